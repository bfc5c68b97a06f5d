"""What a process does beside driving runs: publishing events, a person's command, publishing a workflow.

Each is begun by a process that is struck, begun again by the next one as whoever asked for it would, and then judged.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from sagas import alone, api
from tools.definition import Definition
from tools.reader import definition_from_document
from workbench.commands import dispatch
from workbench.labs import cast
from workbench.labs.chaos.contracts import PLAIN, definition
from workbench.models import User
from workbench.queries.people import actor_of

type Fault = tuple[str, str]


class Errand(ABC):
    """One errand about a run that has come to rest; `number` makes it another one than those before."""

    behaviour: tuple[str, str]
    """Kind and behaviour of the cell that the run is played in first."""

    def __init__(self, ref: str, number: int) -> None:
        self.ref, self.number = ref, number

    @abstractmethod
    def act(self) -> None:
        """Do it, for the first time or again."""

    @abstractmethod
    def faults(self) -> Iterator[Fault]:
        """What is wrong once it was done again."""


class Relay(Errand):
    """The outbox is published. Outside is a file that is only added to."""

    behaviour = ("keyed", "ok")

    def __init__(self, ref: str, number: int) -> None:
        super().__init__(ref, number)
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
    **{
        f"{what}.{when}": errand
        for what, errand in (("relay", Relay), ("command", Command), ("publish", Publish))
        for when in ("before_commit", "after_commit", "commit_lost")
    },
}
"""The errand in which a fault point comes by."""
