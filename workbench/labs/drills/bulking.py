"""One command of a drill for many runs: a list is frozen of their open cases and started, as a lead would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sagas import api
from sagas.facts import Actor
from tools.contract import Json
from tools.drills.drill import concerns
from workbench.bulks import Chosen, freeze_list
from workbench.commands import dispatch
from workbench.errors import Refused
from workbench.labs.drills.cue import Score
from workbench.models import User

REASON = "Looked into it with the system outside."

type Told = tuple[str, str, str]
"""Word of the result, code, sentence."""


def order(
    score: Score,
    command: Mapping[str, Json],
    verb: str,
    *,
    actor: Actor,
    person: User | None,
    command_id: str,
) -> Callable[[], Told]:
    """Pick the cases now, `count` of them at most; what is returned orders the verb for them all."""
    parts = [part for part in score.parts if concerns(command, part.id)]
    facts = [api.run_facts(part.ref) for part in parts]
    cases = [
        Chosen(handoff_ref=one.handoff.ref, version=one.version)
        for one in facts
        if one.handoff is not None and one.handoff.resolved_at is None
    ][: int(command.get("count", len(parts)))]
    given: dict[str, Any] = {"reason": command.get("reason", REASON), "count": str(len(cases))}
    if verb == "mark_acceptable":
        given["end_state"] = "as_it_is"
    if "rate_per_s" in command.get("args", {}):
        given["per_second"] = str(command["args"]["rate_per_s"])

    def ask() -> Told:
        try:
            ref = freeze_list(actor=actor, person=person, verb=verb, cases=cases)
        except Refused as error:
            refusal = error.refusal
            return refusal.answer.value, refusal.code, refusal.sentence.plain()
        score.bulks.append(ref)
        for position in range(1, len(cases) + 1):
            score.command_ids[f"{ref}.{position}"] = (verb, str(command["actor"]))
        result = dispatch(
            actor=actor,
            person=person,
            verb="bulk_start",
            command_id=command_id,
            arguments={"bulk": ref, **given},
            door="web",
        )
        return result.status.value, result.code, result.sentence.plain()

    return ask
