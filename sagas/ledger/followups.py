"""What accepting an end state sets going: a label, a repair task, a block, as a run of its own linked to the case.

The accepted run is final; a remedy never reopens it (engine.md, section 10).
"""

from __future__ import annotations

from sagas.facts import Actor
from sagas.ledger.desk import Desk
from sagas.ledger.start import Request, create
from sagas.models import Run
from sagas.published import store_unnamed
from tools.bindings import bind
from tools.canonical import digest
from tools.contract import Json
from tools.definition import EndState
from tools.reader import definition_from_document


def begin(desk: Desk, end_state: EndState, *, actor: Actor) -> Run:
    """Start the follow-ups of an accepted end state in this very transaction, once per handoff (S0-23, S0-24).

    Raises `tools.bindings.Unbindable` if an argument has no value: then nothing is accepted either.
    """
    handoff = desk.handoff
    start_key = f"follow-up:{desk.run.ref}:{handoff.ref if handoff else ''}"
    scope = desk.scope(desk.actions[0], *(follow_up.args for follow_up in end_state.follow_ups))
    steps: list[Json] = [
        {
            "id": follow_up.id,
            "tool": follow_up.tool,
            "contract_version": follow_up.contract_version,
            "args": {name: {"literal": value} for name, value in bind(dict(follow_up.args), scope).items()},
            "why": follow_up.text,
        }
        for follow_up in end_state.follow_ups
    ]
    document = {
        "name": "follow_up",
        "version": 1,
        "title": end_state.title,
        "team": desk.run.team,
        "on_failure": "handoff",
        "input_schema": {"type": "object"},
        "steps": steps,
    }
    workflow = definition_from_document(document)
    request = Request(
        actor=actor,
        given={},
        business_ref=desk.run.business_ref,
        intent=desk.author.reason if desk.author else "",
        start_key=start_key,
        asked=digest(document),
        accounts={},
        parent=desk.run,
    )
    run = create(store_unnamed(workflow, by=actor.id), workflow, request)
    desk.say(
        "run.follow_up.started",
        actor=actor,
        after={
            "run": run.ref,
            "end_state": end_state.id,
            "calls": [one.text for one in end_state.follow_ups],
        },
    )
    return run
