"""A trip whose bookings go out at the same time: its definition, how it is started, what is known of it outside."""

from __future__ import annotations

from typing import Any

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import PUBLISHER
from tests.integration.sagas.conftest import AGENT
from tests.integration.sagas.stage import Stage
from tools.contract import Json
from tools.reader import definition_from_document

GROUP = ("car", "hotel", "flight")


def trip(
    name: str = "trip_at_once", *, group: str = "bookings", **of_steps: dict[str, Json]
) -> dict[str, Json]:
    """A room for the eve, then car, hotel and flight at once, then a room for the last night."""

    def step(id_: str, tool: str, what: str, **more: Json) -> dict[str, Json]:
        trip = {"from": "input", "pointer": "/trip"}
        args = {"trip": trip, tool.removeprefix("book_"): what}
        return {"id": id_, "tool": tool, "contract_version": 1, "args": args, **more, **of_steps.get(id_, {})}

    beside = {"group": group} if group else {}
    return {
        "name": name,
        "version": 1,
        "title": "A trip booked at once",
        "on_failure": "compensate",
        "recovery_deadline_s": 60.0,
        "input_schema": {
            "type": "object",
            "required": ["trip"],
            "properties": {"trip": {"type": "string"}},
        },
        "steps": [
            step("eve", "book_hotel", "EVE-1"),
            step("car", "book_car", "CAR-1", **beside),
            step("hotel", "book_hotel", "HOTEL-1", **beside),
            step("flight", "book_flight", "FLIGHT-1", **beside),
            step("last", "book_hotel", "LAST-1"),
        ],
        "end_states": [
            {
                "id": "car_only",
                "title": "The car is enough",
                "conditions": [{"step": "car", "states": ["confirmed"], "text": "the car is booked"}],
            }
        ],
    }


def publish() -> None:
    for document in (trip(), trip("trip_asked", hotel={"on_rejected": "handoff"})):
        api.publish_definition(definition_from_document(document), actor=PUBLISHER)


def start(stage: Stage, number: int, definition: str = "trip_at_once") -> str:
    given = {"trip": f"TR-{number}"}
    started = api.start_run(actor=AGENT, definition=definition, input=given, start_key=f"run-{number}")
    stage.know(number, started.run_ref)
    return started.run_ref


def records(stage: Stage, number: int, kind: str, *, of: str = "") -> list[dict[str, Any]]:
    """What the outside ledger holds of a run, in order: of every step, or of one."""
    named = f"{stage.ref(number)}.{of}"
    return [one for one in stage.records if one["kind"] == kind and one["key"].startswith(named)]


def steps_of(found: list[dict[str, Any]]) -> list[str]:
    return [one["key"].split(".")[1] for one in found]


def names(facts: RunFacts) -> list[str]:
    return [entry.name for entry in api.entries(facts.ref)]


def states(facts: RunFacts) -> dict[str, str]:
    return {action.step: action.state.value for action in facts.actions}
