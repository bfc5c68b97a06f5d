"""Every claim of a drill file, a function each: it yields what is otherwise than claimed, in words."""

from __future__ import annotations

import json
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from sagas import api
from tools.contract import Json
from workbench.labs.drills import inside
from workbench.labs.drills.cue import Part
from workbench.labs.drills.record import Record

type Claim = Callable[[Record, Mapping[str, Json], Part], Iterator[str]]


def _bounded(given: Mapping[str, Json], found: int, what: str) -> Iterator[str]:
    if "exactly" in given and found != given["exactly"]:
        yield f"expected {given['exactly']} {what}, are {found}"
    if "at_least" in given and found < given["at_least"]:
        yield f"expected at least {given['at_least']} {what}, are {found}"
    if "at_most" in given and found > given["at_most"]:
        yield f"expected at most {given['at_most']} {what}, are {found}"


def _since(record: Record, claim: Mapping[str, Json], part: Part) -> float | None:
    moment = claim.get("since")
    if moment is None:
        return None
    if "after_command" in moment:
        answered = record.answer(moment["after_command"], part)
        return answered.at if answered is not None else None
    if "after_fault" in moment:
        return record.score.faults_done.get(moment["after_fault"])
    if "t" in moment:
        return float(moment["t"])
    if "after" in moment:
        return record.mark({"answer": moment["after"], "attempt": moment.get("attempt", 1)}, part)
    return 0.0


# --- Outside ------------------------------------------------------------------------------------------------------------


def calls(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how many calls of `of` arrived outside."""
    found = record.seen("arrived", claim["of"], part, claim.get("item", ""), _since(record, claim, part))
    yield from _bounded(claim, len(found), f"calls of {claim['of']}")


def effects(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how often `of` took effect outside."""
    found = record.seen("effect", claim["of"], part, claim.get("item", ""), _since(record, claim, part))
    yield from _bounded(claim, len(found), f"effects of {claim['of']}")


def _split(call: str) -> tuple[str, str]:
    of, _, item = call.partition("/")
    return of, item


def effects_order(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the calls took effect in this order."""
    found: list[tuple[int, str]] = []
    for call in claim["of"]:
        of, item = _split(call)
        effects_of = record.seen("effect", of, part, item)
        if not effects_of:
            yield f"expected {call} to take effect, did not"
            return
        found.append((effects_of[0].seq, call))
    in_order = [call for __, call in sorted(found)]
    if in_order != claim["of"]:
        yield f"expected the order {', '.join(claim['of'])}, is {', '.join(in_order)}"


def waits(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: each was sent only after the one before it had been answered."""
    for earlier, later in pairwise(claim["of"]):
        before, after = _split(earlier), _split(later)
        answered = record.seen("replied", before[0], part)
        arrivals = {one.call for one in record.seen("arrived", before[0], part, before[1])}
        last = max((one.seq for one in answered if one.call in arrivals), default=0)
        sent = record.seen("arrived", after[0], part, after[1])
        if sent and sent[0].seq < last:
            yield f"expected {later} to wait for {earlier}, left before it was answered"


def keys(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how many different keys the calls of `of` carried."""
    found = {one.key for one in record.seen("arrived", claim["of"], part, claim.get("item", ""))}
    if len(found) != claim["distinct"]:
        yield f"expected {claim['distinct']} keys for {claim['of']}, are {len(found)}: {', '.join(sorted(found))}"


def key_without(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: no key of `of` contains any of `words`, nor a time, a host or a process."""
    banned = [*claim.get("words", ()), socket.gethostname(), str(os.getpid())]
    for one in record.seen("arrived", claim["of"], part):
        for word in banned:
            if word and word in one.key:
                yield f"expected a key of {claim['of']} without {word!r}, is {one.key}"
                return


def key_kept_before(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the key was on record before the call left."""
    sent = record.seen("arrived", claim["of"], part)
    step = claim["of"].partition(".")[0]
    prepared = record.entries({"action": "action.prepared", "target": step}, part)
    if not sent or not prepared:
        yield f"expected the key of {claim['of']} on record before the call, there is no call or no record"
    elif record.ground.hours.of_database(prepared[0].at) > record.ground.hours.of_wall(sent[0].at) + 0.05:
        yield f"expected the key of {claim['of']} on record before the call, came after it"


def sent(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: what a call of `of` carried at `pointer`."""
    arrivals = record.seen("arrived", claim["of"], part)
    number = claim.get("attempt", len(arrivals))
    if len(arrivals) < max(number, 1):
        yield f"expected call {number} of {claim['of']}, are {len(arrivals)}"
        return
    body: Json = arrivals[number - 1].detail.get("body")
    found = _at(body, claim["pointer"])
    if claim.get("absent") and found is not None:
        yield f"expected nothing at {claim['pointer']} of {claim['of']}, is {found!r}"
    wanted = claim.get("equals")
    if "equals" in claim and found != wanted and found != _own(wanted, part):
        yield f"expected {wanted!r} at {claim['pointer']} of {claim['of']}, is {found!r}"


def _own(value: Json, part: Part) -> Json:
    return f"{value}.{part.case}" if isinstance(value, str) else value


def _at(document: Json, pointer: str) -> Json:
    for name in pointer.split("/")[1:]:
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def rate(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: never more calls a second than this, over any window of `over_s`."""
    since = _since(record, claim, part) or 0.0
    calls = (one for one in record.ledger if (one.kind, one.of) == ("arrived", claim["of"]))
    at = sorted(moment for one in calls if (moment := record.ground.hours.of_wall(one.at)) >= since)
    over, most = float(claim["over_s"]), float(claim["at_most_per_s"]) * float(claim["over_s"])
    first = 0
    for number, moment in enumerate(at):
        while at[first] < moment - over:
            first += 1
        if number - first + 1 > most:
            most_s = claim["at_most_per_s"]
            yield f"expected at most {most_s} calls of {claim['of']} a second, were {number - first + 1} in {over:g} s"
            return


def spread(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the waiting times before the calls of `of` are not all alike."""
    del part
    at: dict[str, list[float]] = defaultdict(list)
    for one in record.ledger:
        if (one.kind, one.of) == ("arrived", claim["of"]):
            at[one.case].append(record.ground.hours.of_wall(one.at))
    gaps = {round(later - earlier, 1) for moments in at.values() for earlier, later in pairwise(moments)}
    if len(gaps) == 1 and len(at) > 1:
        yield f"expected different waiting times before calls of {claim['of']}, all are {gaps.pop():g} s"


# --- Inside -------------------------------------------------------------------------------------------------------------


def attempts(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how many tries the engine recorded for `of`."""
    step, _, direction = claim["of"].partition(".")
    found = _attempts(record, part, step, direction, claim.get("item", ""))
    yield from _bounded(claim, len(found), f"tries of {claim['of']} on record")


def _attempts(record: Record, part: Part, step: str, direction: str, item: str = "") -> list[dict[str, Any]]:
    facts = record.facts[part.case]
    whole = [action for action in facts.actions if action.step == step]
    units = [unit for action in whole for unit in (action, *action.items)]
    ids = [unit.id for unit in units if not item or inside.item_of(unit) == item]
    return inside.rows(
        "SELECT number, answer FROM sagas_attempt WHERE action_id = ANY(%s) AND (compensation_id IS NOT NULL) = %s",
        [ids, direction == "undo"],
    )


def attempts_match(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: every call that arrived is a try on record, and the other way round."""
    for step in record.score.drill.steps:
        for direction in ("do", "undo"):
            of = f"{step.id}.{direction}"
            if "of" in claim and of not in claim["of"]:
                continue
            arrived = len(record.seen("arrived", of, part))
            known = len(_attempts(record, part, step.id, direction))
            if arrived > known:
                yield f"expected every call of {of} on record, {arrived} arrived and {known} are"


def never(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: no run, action or compensation was ever in this state."""
    before = record.mark(claim["before"], part) if "before" in claim else None
    after = record.mark(claim["after"], part) if "after" in claim else None
    machine = next((name for name in ("action", "compensation") if name in claim), "run")
    wanted = claim["workflow_state"] if machine == "run" else claim.get("is")
    banned = wanted if isinstance(wanted, list) else [wanted]
    for entry in record.trails[part.case]:
        at = record.ground.hours.of_database(entry.at)
        if (before is not None and at >= before) or (after is not None and at <= after):
            continue
        is_one = entry.machine == machine and entry.target in banned and entry.source != entry.target
        if is_one and (
            machine == "run" or (entry.step, entry.item) == (claim[machine], claim.get("item", ""))
        ):
            what = "workflow" if machine == "run" else f"{machine} {claim[machine]}"
            yield f"expected {what} never to be {entry.target}, was at {at:.1f} s"
            return


def time(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how long from one mark to another."""
    wall = claim.get("clock") == "wall"
    start, end = (record.mark(claim[name], part, wall=wall) for name in ("from", "to"))
    for name, mark in (("from", start), ("to", end)):
        if mark is None:
            yield f"expected {json.dumps(claim[name])}, never came"
            return
    took = (end or 0.0) - (start or 0.0)
    if "at_most_s" in claim and took > claim["at_most_s"]:
        yield f"expected at most {claim['at_most_s']:g} s to {json.dumps(claim['to'])}, took {took:.2f} s"
    if "at_least_s" in claim and took < claim["at_least_s"] - 0.05:
        yield f"expected at least {claim['at_least_s']:g} s to {json.dumps(claim['to'])}, took {took:.2f} s"


def entry(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how many entries of this kind there are."""
    found = record.entries(claim, part)
    bounds = claim if {"exactly", "at_least", "at_most"} & set(claim) else {"at_least": 1}
    who = f" by {claim['actor']}" if claim.get("actor", "anybody") != "anybody" else ""
    about = f" about {claim['target']}" if "target" in claim else ""
    yield from _bounded(bounds, len(found), f"entries {claim['action']}{who}{about}")


def entries_order(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: one entry stands before another."""
    first, then = (record.entries(claim[name], part) for name in ("first", "then"))
    if not first or not then:
        yield f"expected {claim['first']['action']} before {claim['then']['action']}, one of them is missing"
    elif first[0].id > then[0].id:
        yield f"expected {claim['first']['action']} before {claim['then']['action']}, came after it"


def provider_ref(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the reference on record for a step."""
    unit = inside.unit(record.facts[part.case], claim["of"], claim.get("item", ""))
    found = unit.provider_ref if unit is not None else ""
    if "equals" in claim and found not in (claim["equals"], _own(claim["equals"], part)):
        yield f"expected the reference {claim['equals']} for {claim['of']}, is {found or 'none'}"
    if "present" in claim and bool(found) is not claim["present"]:
        yield f"expected {'a' if claim['present'] else 'no'} reference for {claim['of']}, is {found or 'none'}"


def compensation_tool(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the tool that is registered to make up for a step."""
    unit = inside.unit(record.facts[part.case], claim["of"])
    made_up = unit.compensation if unit is not None else None
    wanted, found = record.score.names.tool(claim["tool"]), made_up.tool if made_up is not None else "none"
    if found != wanted:
        yield f"expected {claim['tool']} to make up for {claim['of']}, is {found}"


def registered_before_call(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the compensation was on record before the first call arrived outside."""
    step = claim["of"].partition(".")[0]
    registered = record.entries({"action": "compensation.registered", "target": step}, part)
    arrived = record.seen("arrived", claim["of"], part)
    if not registered or not arrived:
        yield f"expected a compensation of {step} and a call, one of them is missing"
    elif (
        record.ground.hours.of_database(registered[0].at) > record.ground.hours.of_wall(arrived[0].at) + 0.05
    ):
        yield f"expected the compensation of {step} on record before its call, came after it"


def versions(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the version of the workflow that the run belongs to, and the newest there is."""
    found = inside.rows(
        "SELECT d.version, (SELECT max(version) FROM sagas_definitionversion n WHERE n.name = d.name) AS newest "
        "FROM sagas_run r JOIN sagas_definitionversion d ON d.id = r.definition_id WHERE r.ref = %s",
        [part.ref],
    )[0]
    for name, column in (("run_has", "version"), ("newest", "newest")):
        if name in claim and found[column] != claim[name]:
            yield f"expected version {claim[name]} ({name}), is {found[column]}"


def next_run(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: which steps a run started now would have."""
    del part
    found = inside.rows(
        "SELECT document FROM sagas_definitionversion WHERE name = %s ORDER BY version DESC LIMIT 1",
        [record.score.names.tool("flow")],
    )
    document = found[0]["document"]
    steps = [
        step["id"] for step in (json.loads(document) if isinstance(document, str) else document)["steps"]
    ]
    if steps != claim["steps"]:
        yield f"expected a run started now to have {', '.join(claim['steps'])}, has {', '.join(steps)}"


def lint(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: publishing the workflow warns with this code."""
    del part
    if claim["code"] not in record.warnings:
        found = ", ".join(sorted(record.warnings)) or "none"
        yield f"expected the workflow to be published with {claim['code']}, was with {found}"


def linked_handoff(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: whether a handoff stands beside a closed run."""
    found = inside.rows(
        "SELECT h.id FROM sagas_handoff h JOIN sagas_run r ON r.id = h.run_id WHERE r.ref = %s AND h.linked",
        [part.ref],
    )
    if bool(found) is not claim["present"]:
        yield f"expected {'a' if claim['present'] else 'no'} handoff beside the closed run, are {len(found)}"


def handoffs(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: how many handoffs the run has had."""
    found = inside.rows(
        "SELECT h.id FROM sagas_handoff h JOIN sagas_run r ON r.id = h.run_id WHERE r.ref = %s", [part.ref]
    )
    yield from _bounded(claim, len(found), "handoffs")


def result(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: what the agent is told of a step."""
    unit = inside.unit(record.facts[part.case], claim["of"])
    told = json.dumps([unit.state.value, unit.result, unit.error_detail]) if unit is not None else ""
    if "state" in claim and (unit is None or unit.state.value != claim["state"]):
        yield f"expected the agent to be told {claim['state']} of {claim['of']}, is {told}"
    for text in claim.get("says", ()):
        if text not in told:
            yield f"expected the agent to be told {text!r} of {claim['of']}, is {told[:200]}"


# --- Answers ------------------------------------------------------------------------------------------------------------


def answers_equal(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: these commands were answered alike, except for the word of the result."""
    bodies = {
        json.dumps(answer.body, default=str)
        for order in claim["commands"]
        for answer in record.answers(order, part)
    }
    if len(bodies) != 1:
        yield f"expected equal answers to commands {claim['commands']}, are {len(bodies)} different ones"


def one_accepted(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: exactly one of these commands was accepted, or with `or_none` at most one."""
    words = [answer.word for order in claim["commands"] for answer in record.answers(order, part)]
    accepted, least = words.count("accepted"), 0 if claim.get("or_none") else 1
    if not least <= accepted <= 1:
        how = "exactly" if least else "at most"
        orders = claim["commands"]
        yield f"expected {how} one of the commands {orders} to be accepted, are {accepted}: {', '.join(words)}"


# --- Everything ---------------------------------------------------------------------------------------------------------


def stored(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: no stored row is larger than `at_most_bytes`, or none holds any of `words`."""
    places = set(claim.get("places", ("everywhere",)))
    tables = {"entry": "sagas_entry", "outbox": "sagas_outbox", "run": "sagas_run"}
    for place, table in tables.items():
        if not places & {place, "everywhere"}:
            continue
        column = "run_ref" if table == "sagas_entry" else "ref" if table == "sagas_run" else None
        where = f"{column} = %s" if column else "run_id = (SELECT id FROM sagas_run WHERE ref = %s)"
        whole = inside.rows(f"SELECT to_jsonb(t)::text AS whole FROM {table} t WHERE {where}", [part.ref])  # noqa: S608
        for row in whole:
            size = len(row["whole"].encode())
            if "at_most_bytes" in claim and size > claim["at_most_bytes"]:
                yield f"expected no {place} larger than {claim['at_most_bytes']} bytes, one has {size}"
                return
            for word in claim.get("words", ()):
                if word in row["whole"]:
                    yield f"expected {word!r} nowhere, stands in a {place}"
                    return
    if places & {"log", "everywhere"} and "words" in claim:
        said = record.ground.logs()
        for word in claim["words"]:
            if word in said:
                yield f"expected {word!r} nowhere, stands in a log"


def processes(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: the processes are alive, and none was started again more than `at_most` times."""
    del part
    down = record.ground.down()
    if down:
        yield f"expected every process alive, {', '.join(down)} ended"
    if record.restarts > claim.get("at_most", 0):
        yield f"expected at most {claim.get('at_most', 0)} unexpected ends of processes, were {record.restarts}"


def laws(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """Judges: states and entries agree, nobody is without an owner, every entry has an actor."""
    del claim
    trail, facts = record.trails[part.case], record.facts[part.case]
    nameless = [one.name for one in trail if not one.actor_id or not one.actor_kind]
    if nameless:
        yield f"expected an actor on every entry, none on {nameless[0]}"
    if [one.seq for one in trail] != list(range(1, len(trail) + 1)):
        yield "expected the trail without gaps, has some"
    moves = inside.rows(
        "SELECT count(*) AS moves FROM sagas_entry e JOIN sagas_action a ON a.id = e.object_id "
        "JOIN sagas_run r ON r.id = a.run_id WHERE e.machine = 'action' AND r.ref = %s",
        [part.ref],
    )[0]["moves"]
    changed = inside.rows(
        "SELECT coalesce(sum(a.version - 1), 0) AS versions FROM sagas_action a JOIN sagas_run r ON r.id = a.run_id "
        "WHERE r.ref = %s",
        [part.ref],
    )[0]["versions"]
    if moves < changed:
        yield f"expected an entry for every change of an action, {changed} changes have {moves}"
    yield from _effects_agree(record, part)
    pulse = inside.pulses([part.ref])[0]
    if not pulse.with_a_person and not pulse.owner and pulse.due_at is None:
        yield f"expected somebody to be responsible for the run, {facts.state.value} without owner and due time"


def _effects_agree(record: Record, part: Part) -> Iterator[str]:
    """What counts as done is done once outside, what counts as undone or never done is not there (law 7)."""
    facts = record.facts[part.case]
    for step in record.score.drill.steps:
        for item in step.parts:
            units = [one for one in inside.units(facts, step.id) if inside.item_of(one) == item]
            if not units or step.kind == "read":
                continue
            done = record.seen("effect", f"{step.id}.do", part, item)
            net = len(done) - len(record.seen("effect", f"{step.id}.undo", part, item))
            by_others = len(record.seen("third_party", f"{step.id}.do", part, item))
            net -= by_others
            states = {one.state.value for one in units}
            where = f"{step.id}/{item}" if item else step.id
            if "confirmed" in states and net != 1 and not by_others and "superseded" not in states:
                yield f"{where} is confirmed and stands {net} times outside"
            if states <= {"compensated", "rejected", "skipped", "not_started", "prepared"} and net != 0:
                yield f"{where} is {'/'.join(sorted(states))} and stands {net} times outside"
            if net not in (0, 1):
                yield f"{where} stands {net} times outside"


def at_a_moment(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """What was found when the moment came; nothing where it never did."""
    found = record.looks.get((id(claim), part.case))
    if found is None:
        yield f"expected a look at {json.dumps(claim.get('at', {'end': True}))}, the moment never came"
    elif found:
        yield found


KNOWN: Mapping[str, Claim] = {
    claim.__name__: claim
    for claim in (
        *(calls, effects, effects_order, waits, keys, key_without, key_kept_before, sent, rate, spread),
        *(attempts, attempts_match, never, time, entry, entries_order, provider_ref, compensation_tool),
        *(registered_before_call, versions, next_run, lint, linked_handoff, handoffs, result),
        *(answers_equal, one_accepted, stored, processes, laws),
    )
} | dict.fromkeys(("seen", "offer", "preview", "page", "alarm"), at_a_moment)


def check(record: Record, claim: Mapping[str, Json], part: Part) -> Iterator[str]:
    """What is otherwise than one claim says, for one run."""
    for found in KNOWN[claim["claim"]](record, claim, part):
        yield f"{claim['text']}: {found}" if "text" in claim else found


def alarms() -> set[str]:
    """The codes of the alarms that are in force."""
    return {alarm.code for alarm in api.alarms()}
