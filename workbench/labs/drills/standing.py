"""How things stand at one moment, compared with what a drill expects: states, effects outside, the handoff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sagas import api
from sagas.facts import RunFacts
from sagas.states import ActionState, RunState
from tools.contract import Json
from tools.drill_words import VERBS
from workbench import policies
from workbench.commands import COMMANDS
from workbench.labs.drills import inside
from workbench.labs.drills.casting import person_of
from workbench.labs.drills.cue import Part, Score
from workbench.labs.drills.outside import Seen
from workbench.roles import Role

type _StateOf = Callable[[RunFacts, str, str], str]


def differences(wanted: Mapping[str, Json], score: Score, part: Part, facts: RunFacts) -> Iterator[str]:
    """Where states and handoff differ from what is wanted, in words."""
    if "workflow_state" in wanted:
        yield from _state("workflow", wanted["workflow_state"], facts.state.value)
    if "agent_state" in wanted:
        yield from _state("state for the agent", wanted["agent_state"], api.word_for_agent(facts))
    for step, state in wanted.get("actions", {}).items():
        yield from _unit_states(facts, step, state, "", _action_state)
    for step, state in wanted.get("compensations", {}).items():
        yield from _unit_states(facts, step, state, "compensation of ", _compensation_state)
    if "handoff" in wanted:
        yield from _handoff(wanted["handoff"], score, part, facts)


def _state(what: str, wanted: Json, found: str) -> Iterator[str]:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    if found not in allowed:
        yield f"expected {what} {' or '.join(allowed)}, is {found}"


def _unit_states(facts: RunFacts, step: str, wanted: Json, what: str, state_of: _StateOf) -> Iterator[str]:
    if isinstance(wanted, Mapping):
        for item, state in wanted.items():
            yield from _state(f"{what}{step}/{item}", state, state_of(facts, step, item))
    else:
        yield from _state(f"{what}{step}", wanted, state_of(facts, step, ""))


def _action_state(facts: RunFacts, step: str, item: str) -> str:
    unit = inside.unit(facts, step, item)
    return "absent" if unit is None else unit.state.value


def _compensation_state(facts: RunFacts, step: str, item: str) -> str:
    """A registered one is void once its run is completed: nothing will run it, which is what `registered` says there."""
    state = inside.compensation_state(inside.unit(facts, step, item))
    return "registered" if state == "voided" and _was_never_due(facts, step) else state


def _was_never_due(facts: RunFacts, step: str) -> bool:
    unit = inside.unit(facts, step)
    return facts.state is RunState.COMPLETED and unit is not None and unit.state is ActionState.CONFIRMED


def effects(wanted: Mapping[str, Json], part: Part, ledger: Sequence[Seen]) -> Iterator[str]:
    """Where the effects outside differ from what is wanted."""

    def count(step: str, way: str, item: str = "") -> int:
        of = (f"{step}.{way}", part.case)
        return sum(
            one.kind == "effect" and (one.of, one.case) == of and item in ("", one.item) for one in ledger
        )

    for step, numbers in wanted.items():
        for way in ("do", "undo"):
            if way in numbers and count(step, way) != numbers[way]:
                yield f"expected {step}.{way} to take effect {_times(numbers[way])}, did {_times(count(step, way))}"
        if "total" in numbers and count(step, "do") != numbers["total"]:
            yield f"expected {step} to take effect {_times(numbers['total'])} in all, did {_times(count(step, 'do'))}"
        for item, both in numbers.get("items", {}).items():
            for way, number in both.items():
                found = count(step, way, item)
                if found != number:
                    yield f"expected {step}/{item}.{way} to take effect {_times(number)}, did {_times(found)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


# --- The handoff ------------------------------------------------------------------------------------------------------


def _handoff(wanted: Mapping[str, Json], score: Score, part: Part, facts: RunFacts) -> Iterator[str]:
    handoff = facts.handoff
    is_open = handoff is not None and handoff.state.value != "resolved" and not handoff.linked
    if is_open is not wanted["present"]:
        found = f"there is one ({handoff.reason})" if is_open and handoff is not None else "there is none"
        yield f"expected {'a' if wanted['present'] else 'no'} handoff, {found}"
        return
    if not is_open or handoff is None:
        return
    if handoff.reason not in wanted.get("reason", [handoff.reason]):
        yield f"expected a handoff because of {' or '.join(wanted['reason'])}, is {handoff.reason}"
    if "about" in wanted and str(handoff.params.get("step", "")) != wanted["about"]:
        yield f"expected a handoff about {wanted['about']}, is about {handoff.params.get('step', 'no step')}"
    if "claimed_by" in wanted:
        holder = "" if wanted["claimed_by"] == "nobody" else score.people[wanted["claimed_by"]].id
        if handoff.claimed_by != holder:
            yield f"expected the handoff to be with {wanted['claimed_by']}, is with {handoff.claimed_by or 'nobody'}"
    yield from _offers(wanted, score, facts)


def _offers(wanted: Mapping[str, Json], score: Score, facts: RunFacts) -> Iterator[str]:
    who = wanted.get("asked_as", "")
    for allowed, name in ((True, "allowed_actions"), (False, "not_offered")):
        for target, verbs in wanted.get(name, {}).items():
            for verb in verbs:
                code = why_not(score, facts, verb, "" if target == "workflow" else target, who)
                if (code == "") is not allowed:
                    found = f"is refused ({code})" if code else "is offered"
                    yield f"expected {verb} of {target} to be {'possible' if allowed else 'refused'}, {found}"
    for target, codes in wanted.get("refusal_codes", {}).items():
        for verb, code in codes.items():
            found = why_not(score, facts, verb, "" if target == "workflow" else target, who)
            if found != code:
                yield f"expected {verb} of {target} to be refused with {code}, is {found or 'possible'}"


def why_not(score: Score, facts: RunFacts, verb: str, target: str, who: str) -> str:
    """The code with which a command would be refused now; "" where it is possible. Without a person: the engine's own."""
    verb, step = VERBS.get(verb, verb), target.partition("/")[0]
    if verb not in COMMANDS:
        return "no_such_verb"
    if who:
        actor = score.people[who]
        person = person_of(score, who)
        roles = person.current_roles() if person is not None else frozenset[Role]()
        refusal = policies.why_not(actor=actor, roles=roles, facts=facts, verb=verb, step=step)
        return refusal.code if refusal is not None else ""
    obstacle = api.obstacle(facts, verb, step=step)
    return obstacle.code if obstacle is not None else ""
