"""A trip whose hotel desk has a test mode: both its calls can be tried without their effect."""

from __future__ import annotations

import itertools

from sagas import api
from sagas.facts import RunFacts
from sagas.states import RunState
from tests.integration.workbench import flows
from tools.reader import definition_from_document, read_definition
from workbench.labs import cast

_numbers = itertools.count(30_000)


def trip(*, hotel: str = "HARBOUR-12") -> RunFacts:
    """A trip whose hotel desk has a test mode, driven until it waits for a person."""
    document = dict(read_definition(flows.ROOT / "examples" / "trip_package.toml").document)
    steps = [{**step, "on_rejected": "handoff"} for step in document["steps"]]
    for step in steps:
        if step["tool"] == "book_hotel":
            step["contract_version"] = 2
    definition = definition_from_document({**document, "name": "tried_trip", "steps": steps})
    api.publish_definition(definition, actor=cast.SYSTEM)
    number = next(_numbers)
    given = {"trip": f"TR-{number}", "car": "COMPACT", "hotel": hotel, "flight": "AB-400"}
    started = api.start_run(
        actor=flows.AGENT,
        definition="tried_trip",
        input=given,
        start_key=f"trip-{number}",
        intent="Book the trip",
    )
    facts = flows.drive_until_still(started.run_ref)
    assert facts.state is RunState.HANDOFF
    return facts
