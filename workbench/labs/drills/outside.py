"""What the other side is told before a drill, and what its ledger says afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tools.contract import Json
from tools.drills.drill import Drill, Step, concerns
from tools.drills.translate import about
from workbench.labs.drills.cue import Part, Score
from workbench.labs.world import Outside


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One record of the ledger outside, in the words of the file. `at` is seconds of the wall clock."""

    seq: int
    call: int
    kind: str
    of: str
    item: str
    case: str
    key: str
    at: float
    status: int | None
    detail: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Calls that are held: until `after_s` seconds of the drill's clock after arriving, and while `until` is not done."""

    name: str
    of: str
    attempt: int
    after_s: float
    held: bool
    together_with: str = ""


def gated_calls(drill: Drill) -> frozenset[str]:
    """The calls that are held outside at some time."""
    slow = {one["on"] for one in drill.downstream if one.get("after_s")}
    return frozenset(slow | {of for of, *__ in _held(drill)})


def _moments(drill: Drill) -> Iterable[Mapping[str, Json]]:
    expected = [drill.expected, *drill.expected.get("runs", {}).values()]
    claims = [claim for one in expected for name in ("must_not", "also") for claim in one.get(name, ())]
    for one in (*drill.faults, *drill.commands, *claims):
        for name in ("at", "since"):
            if name in one:
                yield one[name]


def _held(drill: Drill) -> set[tuple[str, int, str]]:
    """(call, attempt, item) of every moment `during`."""
    return {
        (moment["during"], moment.get("attempt", 1), moment.get("item", ""))
        for moment in _moments(drill)
        if "during" in moment
    }


def plan(score: Score) -> tuple[list[dict[str, Any]], dict[str, Gate]]:
    """The rules for all runs of a drill, and the gates that they name."""
    rules: list[dict[str, Any]] = []
    gates: dict[str, Gate] = {}
    for part in score.parts:
        for step in score.drill.steps:
            for direction in ("do", "undo", "query"):
                if direction == "undo" and step.compensation is None:
                    continue
                rules += _rules(score, part, step, direction, gates)
    return rules, gates


def _rules(
    score: Score, part: Part, step: Step, direction: str, gates: dict[str, Gate]
) -> list[dict[str, Any]]:
    of = f"{step.id}.{direction}"
    told = [
        one
        for one in score.drill.downstream
        if one["on"] == of and concerns(one, part.id) and not part.runs.ordinary
    ]
    held = {(item, attempt) for call, attempt, item in _held(score.drill) if call == of}
    if part.runs.ordinary:
        held = set()
    rules = []
    items = {one.get("item", "") for one in told} | {item for item, __ in held}
    for item in sorted(items, reverse=True):
        courses = _courses(part, step, of, item, told, held, gates)
        match = [about(part.case, step.id, item)]
        rules.append(
            {"tool": score.names.call(step, direction), "match": match, "per": "rule", "courses": courses}
        )
    return rules


def _courses(
    part: Part,
    step: Step,
    of: str,
    item: str,
    told: list[Mapping[str, Json]],
    held: set[tuple[str, int]],
    gates: dict[str, Gate],
) -> list[dict[str, Any]]:
    courses: list[dict[str, Any]] = []
    open_ended: list[dict[str, Any]] = []
    waiting = {attempt for name, attempt in held if name == item}
    for one in (one for one in told if one.get("item", "") == item):
        attempt = one.get("attempt", "1+")
        course = _course(part, step, one)
        if isinstance(attempt, str):
            open_ended.append({**course, "from": int(attempt.rstrip("+"))})
            continue
        name = f"{about(part.case, of, item)}.{attempt}"
        if one.get("after_s") or attempt in waiting or "together_with" in one:
            _gate(gates, name, of, attempt, one, attempt in waiting)
            late = one.get("after_s") or attempt not in waiting
            course |= {"gate": name} if late else {"gate_of_answer": name}
        waiting.discard(attempt)
        courses.append({**course, "attempts": [attempt]})
    for attempt in sorted(waiting):
        name = f"{about(part.case, of, item)}.{attempt}"
        base = next((one for one in reversed(open_ended) if one["from"] <= attempt), {"mode": "ok"})
        gates[name] = Gate(name=name, of=of, attempt=attempt, after_s=0.0, held=True)
        course = {key: value for key, value in base.items() if key != "from"}
        courses.append({**course, "attempts": [attempt], "gate_of_answer": name})
    return courses + sorted(open_ended, key=lambda one: -one["from"])


def _gate(
    gates: dict[str, Gate], name: str, of: str, attempt: int, one: Mapping[str, Json], held: bool
) -> None:
    gates[name] = Gate(
        name=name,
        of=of,
        attempt=attempt,
        after_s=float(one.get("after_s", 0.0)),
        held=held,
        together_with=one.get("together_with", ""),
    )


def _course(part: Part, step: Step, one: Mapping[str, Json]) -> dict[str, Any]:
    """One behaviour of the file in the simulator's words."""
    told: dict[str, Any] = {}
    if "ref" in one:
        told["ref"] = reference(one["ref"], part)
    told |= {name: one[name] for name in ("bytes", "result") if name in one}
    if "answer" in one:
        answer = dict(one["answer"])
        if "ref" in answer:
            answer["ref"] = reference(answer["ref"], part)
        told["answer"] = answer
    error = {"error": one.get("code", "refused"), "message": one.get("text", "refused")}
    # With a limit of its own the call really waits for it; else the connection ends at once without an answer.
    silent = "no_answer" if step.limit_s else "reset"
    match one["behaviour"]:
        case "ok" | "late":
            course: dict[str, Any] = {"mode": "ok"}
        case "timeout-but-applied":
            course = {"mode": f"applied_{silent}" if step.limit_s else silent, "applied": True}
        case "timeout-not-applied":
            course = {"mode": silent, "applied": False}
        case "reject":
            course = {"mode": "refuse", "status": one.get("http", 422), "body": error}
        case "5xx":
            applied = bool(one.get("applied"))
            status = one.get("http", 500 if applied or "applied" not in one else 503)
            body = {"error": one.get("code", "unavailable"), "message": one.get("text", "unavailable")}
            course = {"mode": "fail_after" if applied else "fail_before", "status": status, "body": body}
        case "429":
            course = {"mode": "throttle", "retry_after_s": int(one.get("retry_after_s", 1))}
        case "garbage":
            course = _garbage(one)
        case "partial":
            course = {"mode": "ok"}
            told["answers"] = one.get("items", {})
        case _:
            course = {"mode": "ok"}
            told["pending"] = True
    return {**course, **({"told": told} if told else {})}


def _garbage(one: Mapping[str, Json]) -> dict[str, Any]:
    applied = bool(one.get("applied"))
    match one.get("kind", "html"):
        case "cut":
            return {"mode": "cut", "applied": applied}
        case "other_json":
            return {"mode": "wrong_schema", "applied": applied}
    return {"mode": "garbage", "applied": applied, **({"status": one["http"]} if "http" in one else {})}


def reference(ref: str, part: Part) -> str:
    """A reference of the file, made the run's own: many runs share one database."""
    return f"{ref}.{part.case}"


def ledger(outside: Outside, score: Score) -> list[Seen]:
    """Everything that arrived, took effect or was answered for this drill, oldest first."""
    whose = {score.names.call(step, way): f"{step.id}.{way}" for step, way in _calls(score.drill)}
    found = []
    about_of: dict[int, str] = {}
    for part in score.parts:
        for record in outside.ledger(business=part.case):
            place = record["detail"].get("about") or about_of.get(record["call"], "")
            about_of.setdefault(record["call"], place)
            found.append(_seen(record, place, whose))
    return sorted(found, key=lambda one: one.seq)


def _calls(drill: Drill) -> Iterable[tuple[Step, str]]:
    for step in drill.steps:
        yield from ((step, way) for way in ("do", "query"))
        if step.compensation is not None:
            yield step, "undo"


def _seen(record: Mapping[str, Any], place: str, whose: Mapping[str, str]) -> Seen:
    case, _, rest = place.partition(".")
    step, _, item = rest.partition(".")
    way = {"do": "do", "compensate": "undo", "query": "query"}.get(record["direction"], "do")
    return Seen(
        seq=record["seq"],
        call=record["call"],
        kind=record["kind"],
        of=f"{step}.{way}" if step else whose.get(record["tool"], record["tool"]),
        item=record["detail"].get("item", item),
        case=case or record["business"],
        key=record["key"],
        at=datetime.fromisoformat(record["at"]).timestamp(),
        status=record["status"],
        detail=record["detail"],
    )


def nth(records: Iterable[Seen], kind: str, of: str, case: str, attempt: int, item: str = "") -> Seen | None:
    """The n-th record of a kind, for one call of one run."""
    fitting = [
        one for one in records if (one.kind, one.of, one.case) == (kind, of, case) and item in ("", one.item)
    ]
    if kind == "replied":
        arrivals = [one for one in records if (one.kind, one.of, one.case) == ("arrived", of, case)]
        arrivals = [one for one in arrivals if item in ("", one.item)]
        if len(arrivals) < attempt:
            return None
        return next((one for one in fitting if one.call == arrivals[attempt - 1].call), None)
    return fitting[attempt - 1] if len(fitting) >= attempt else None
