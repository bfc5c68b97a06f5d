"""What a process does beside driving runs: publishing events, a person's command or signature, a workflow, comparing.

Each is begun by a process that is struck, begun again by the next one as whoever asked for it would, and then judged.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from sagas import alone, api
from sagas.facts import Actor
from sagas.states import PermitState, RunState
from tools.definition import Definition
from tools.reader import definition_from_document
from workbench.commands import dispatch
from workbench.labs import cast
from workbench.labs.chaos.cells import slot_of
from workbench.labs.chaos.contracts import PLAIN, definition
from workbench.models import User
from workbench.queries.people import actor_of

type Fault = tuple[str, str]


class Ground(Protocol):
    """What an errand is run on."""

    agent: Actor

    def bring_to_rest(self, ref: str) -> None:
        """Let every lease run out, bury the dead, and drive the run as far as it goes without a person."""

    def effects(self, business: str) -> list[str]:
        """The tools whose calls took effect out there for this, in their order."""

    def change(self, kind: str, id_: str, state: str) -> None:
        """Have somebody else change a thing out there."""


class Errand(ABC):
    """One errand about a run that has come to rest; `number` makes it another one than those before."""

    behaviour: tuple[str, str]
    """Kind and behaviour of the cell that the run is played in first."""

    def __init__(self, ground: Ground, about: str, number: int) -> None:
        self.ground, self.about, self.number = ground, about, number
        self.ref = api.run_ref(ground.agent, about)

    @abstractmethod
    def act(self) -> None:
        """Do it, for the first time or again."""

    @abstractmethod
    def faults(self) -> Iterator[Fault]:
        """What is wrong once it was done again."""


class Relay(Errand):
    """The outbox is published. Outside is a file that is only added to."""

    behaviour = ("keyed", "ok")

    def __init__(self, ground: Ground, about: str, number: int) -> None:
        super().__init__(ground, about, number)
        handle, name = tempfile.mkstemp(prefix="amends-chaos-events-")
        os.close(handle)
        self._outside = Path(name)

    def act(self) -> None:
        """Publish everything that is pending."""
        with self._outside.open("a") as outside:

            def tell(event: str) -> None:
                outside.write(f"{event}\n")
                outside.flush()

            alone.relay_all(tell)

    def faults(self) -> Iterator[Fault]:
        """Every event at least once, none skipped, in order but for repeats (V10)."""
        own = [line for line in self._outside.read_text().splitlines() if line.startswith(f"{self.ref}:")]
        self._outside.unlink()
        seqs = [int(line.rpartition(":")[2]) for line in own]
        expected = {entry.seq for entry in api.entries(self.ref) if entry.seq is not None}
        if set(seqs) != expected:
            yield "lost", f"published {sorted(set(seqs))} of {sorted(expected)}"
        if any(later > sooner + 1 for sooner, later in pairwise(seqs)):
            yield "disordered", f"published in the order {seqs}"


class Command(Errand):
    """A person takes a case, and asks once more under the same id when no answer comes."""

    behaviour = ("blind", "applied_no_answer")

    def act(self) -> None:
        """Take the case."""
        person = User.objects.get(username=cast.MAYA.username)
        handoff = api.run_facts(self.ref).handoff
        assert handoff is not None  # noqa: S101  the cell ends with a person
        self._result = dispatch(
            actor=actor_of(person),
            person=person,
            verb="claim",
            handoff_ref=handoff.ref,
            command_id=f"chaos-{self.number}",
            arguments={},
            door="api",
        )

    def faults(self) -> Iterator[Fault]:
        """Applied once, and whoever asks again is told so."""
        applied = [entry for entry in api.entries(self.ref) if entry.command_id == f"chaos-{self.number}"]
        names = [entry.name for entry in applied]
        if not names:
            yield "lost", "the command left no entry"
        if len(names) != 1:
            yield "doubled", f"the command left {names}"
        if self._result.status not in ("accepted", "duplicate"):
            yield (
                "false-rejected",
                f"the second request was answered {self._result.status} ({self._result.code})",
            )


class Signature(Errand):
    """A person signs the one call of a run, and it goes out; whoever gets no answer signs once more."""

    behaviour = ("keyed", "ok")
    workflow = "chaos_signed"

    def __init__(self, ground: Ground, about: str, number: int) -> None:
        super().__init__(ground, f"{about}.signed", number)
        self._slot = slot_of(self.about, 1)
        api.start_run(
            actor=ground.agent, definition=self.workflow, input={"s1": self._slot}, start_key=self.about
        )
        ground.bring_to_rest(self.ref)
        requests = [row for row in api.signoffs().rows if row.run_ref == self.ref]
        assert len(requests) == 1  # noqa: S101  the only step wants one
        self._request = requests[0].ref
        self._digest = api.signoff_facts(self._request).permit.digest

    def act(self) -> None:
        """Sign, and have the run driven on by whoever comes next."""
        person = User.objects.get(username=cast.PRIYA.username)
        self._result = dispatch(
            actor=actor_of(person),
            person=person,
            verb="sign",
            signoff_ref=self._request,
            command_id=f"chaos-sign-{self.number}",
            arguments={"digest": self._digest, "reason": "Read the call before signing it."},
            door="api",
        )
        self.ground.bring_to_rest(self.ref)

    def faults(self) -> Iterator[Fault]:
        """Signed once, used once, sent once (V8)."""
        facts = api.run_facts(self.ref)
        effects = self.ground.effects(self._slot)
        if facts.state is not RunState.COMPLETED:
            yield "stuck", f"signed, and left {facts.state}"
        if len(effects) != 1:
            yield "doubled" if effects else "lost", f"signed once, and it took effect {len(effects)} times"
        permit = facts.action("s1").permit
        if permit is None or permit.state is not PermitState.CONSUMED:
            yield "false-confirmed", f"it went out, and its signature is {permit and permit.state}"
        signed = [entry for entry in api.entries(self.ref) if entry.command_id == f"chaos-sign-{self.number}"]
        if len({entry.name for entry in signed}) != len(signed):
            yield "doubled", f"the signature left {[entry.name for entry in signed]}"
        if self._result.status not in ("accepted", "duplicate"):
            yield (
                "false-rejected",
                f"the second request was answered {self._result.status} ({self._result.code})",
            )


class Comparison(Errand):
    """The record is compared with the outside, where somebody has taken the effect of the run away by hand."""

    behaviour = ("natural", "ok")

    def __init__(self, ground: Ground, about: str, number: int) -> None:
        super().__init__(ground, about, number)
        self._slot = slot_of(about, 2)
        facts = api.run_facts(self.ref)
        ground.change("placement", facts.action("s2").provider_ref, "gone")
        self._state = facts.state
        self._before = len(ground.effects(self._slot))

    def act(self) -> None:
        """Compare everything that has changed."""
        alone.compare()

    def faults(self) -> Iterator[Fault]:
        """The contradiction stands beside the run once, and nothing outside was touched."""
        facts = api.run_facts(self.ref)
        told = [entry for entry in api.entries(self.ref) if entry.name == "reconciliation.drift"]
        if not told or facts.handoff is None or not facts.handoff.linked:
            yield "lost", "what is missing outside stands nowhere"
        if len(told) > 1 or len([one for one in facts.handoffs if one.linked]) > 1:
            yield "doubled", f"it was told {len(told)} times"
        if facts.state is not self._state:
            yield "false-rejected", f"the comparison made {self._state} into {facts.state}"
        if len(self.ground.effects(self._slot)) != self._before:
            yield "doubled", "a comparison took effect outside"


class Publish(Errand):
    """A workflow is published."""

    behaviour = ("keyed", "ok")

    def act(self) -> None:
        """Publish it, or find it published."""
        api.publish_definition(self._workflow(), actor=cast.SYSTEM)

    def _workflow(self) -> Definition:
        document = definition(f"chaos_published_{self.number}", [f"place_{PLAIN}"], refused=False)
        return definition_from_document(document)

    def faults(self) -> Iterator[Fault]:
        """It is there, as it was written."""
        if api.publish_definition(self._workflow(), actor=cast.SYSTEM):
            yield "lost", "the workflow was not published"


ERRANDS: Mapping[str, type[Errand]] = {
    **dict.fromkeys(("relay.read", "relay.published"), Relay),
    "command.begun": Command,
    "bell.before_ring": Signature,
    **dict.fromkeys(("reconcile.before_query", "reconcile.answered"), Comparison),
    **{
        f"{what}.{when}": errand
        for what, errand in (
            ("relay", Relay),
            ("command", Command),
            ("publish", Publish),
            ("grant", Signature),
            ("permit", Signature),
            ("reconcile", Comparison),
        )
        for when in ("before_commit", "after_commit", "commit_lost")
    },
}
"""The errand in which a fault point comes by."""
