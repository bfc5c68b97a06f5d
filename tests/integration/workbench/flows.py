"""Real cases on the real engine and the simulated world: started, driven in this thread, handed to people."""

from __future__ import annotations

import itertools
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from sagas import api
from sagas.executor import drive
from sagas.facts import Actor, ActorKind, RunFacts
from sagas.ledger import workers
from sagas.ledger.advance import claim_next
from sagas.models import Run
from sagas.states import FINAL_RUN_STATES, RunState
from tests.conftest import clock_of
from tools.definition import Definition
from tools.reader import definition_from_document, read_definition
from tools.world import World
from workbench.commands import Result, dispatch, make_preview
from workbench.labs import cast
from workbench.models import User
from workbench.queries.people import actor_of

ROOT = Path(__file__).resolve().parents[3]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:maya/orders", name="orders", role="agent")
REASON = "Checked with the carrier by phone, nothing arrived."
_numbers = itertools.count(20_000)


@cache
def _workflow() -> Definition:
    document = dict(read_definition(ROOT / "examples" / "order_fulfilment.toml").document)
    steps = [{**step, "on_rejected": "handoff"} for step in document["steps"]]
    return definition_from_document(
        {**document, "name": "orders", "steps": steps, "recovery_deadline_s": 0.1}
    )


def publish() -> None:
    """The order workflow as "orders", with a recovery that gives up at once; its contracts are published before."""
    api.publish_definition(_workflow(), actor=cast.SYSTEM)


def start(definition: str = "orders", **given: Any) -> str:
    """Start an order of its own number; returns the run's reference."""
    number = next(_numbers)
    order = {
        "order": f"O-{number}",
        "sku": "SKU-1",
        "qty": 1,
        "address": "1 Quay",
        "amount": "129.00",
        **given,
    }
    started = api.start_run(
        actor=AGENT, definition=definition, input=order, start_key=f"start-{number}", intent="Send the order"
    )
    return started.run_ref


PATIENCE_S = 120.0
"""Ends what hangs, on a machine however busy."""


def drive_until_still(run_ref: str, *, also_at: tuple[RunState, ...] = ()) -> RunFacts:
    """Drive everything that is due until the run waits for a person, is final, or is in one of the other states.

    Nobody waits for a due time: the clock is put forward to it.
    """
    owner, world = workers.enrol("test"), World(settings.TOOL_SYSTEMS)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            claimed = claim_next(owner)
            if claimed is not None:
                drive(*claimed, world)
                continue
            facts = api.run_facts(run_ref)
            if facts.state in (*FINAL_RUN_STATES, RunState.HANDOFF, *also_at):
                return facts
            if not workers.beat(owner):
                owner = workers.enrol("test")
            _wait_for(run_ref)
        raise AssertionError(f"{run_ref} did not come to rest: {api.run_facts(run_ref).state}")
    finally:
        workers.sign_off(owner)
        world.close()


def _wait_for(run_ref: str) -> None:
    due = Run.objects.values_list("due_at", flat=True).get(ref=run_ref)
    left_s = (due - api.now()).total_seconds() if due is not None else 0.0
    if left_s > 0.0:
        clock_of(os.environ["DATABASE_OWNER_URL"]).put_forward(left_s)
    else:
        time.sleep(0.02)


def person(username: str) -> User:
    return User.objects.get(username=username)


class Desk:
    """A person at the workbench: previews and runs commands as a page would."""

    def __init__(self, username: str) -> None:
        self.person = person(username)
        self.actor = actor_of(self.person)

    def preview(self, handoff_ref: str, verb: str, step: str = "") -> str:
        facts = api.handoff_facts(handoff_ref)
        return make_preview(actor=self.actor, person=self.person, facts=facts, verb=verb, step=step).id

    def run(self, verb: str, handoff_ref: str, command_id: str, **arguments: Any) -> Result:
        """Run a verb with the version as it is now and, unless one is given, a preview made for it."""
        preview_id = arguments.pop("preview_id", None)
        saw_version = arguments.pop("saw_version", None)
        without = {"claim", "release", "comment", "ask_for_case", "reopen", "withdraw_signoff"}
        without |= {"freeze", "unfreeze", "keep_frozen", "open_tool"}
        if preview_id is None and verb not in without:
            preview_id = self.preview(handoff_ref, verb, arguments.get("step", ""))
        return dispatch(
            actor=self.actor,
            person=self.person,
            verb=verb,
            handoff_ref=handoff_ref,
            command_id=command_id,
            saw_version=saw_version,
            arguments=arguments,
            preview_id=preview_id or "",
            door="test",
        )


def names(run_ref: str) -> list[str]:
    """The trail of a run, as entry names."""
    return [entry.name for entry in api.entries(run_ref)]
