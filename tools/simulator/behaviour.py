"""What the world does with a call when it was told to misbehave.

A rule picks calls by tool, content and number of the try; its mode says what happens. Nothing is drawn at
random: a rule with a share decides by a hash of seed, subject and try, so a run can be repeated exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tools.simulator import clock
from tools.simulator.store import Tables
from tools.simulator.wire import Call, Json

FOREVER_MS = 60_000


class Reply(StrEnum):
    """How the answer leaves, if it leaves."""

    OWN = "own"
    CANNED = "canned"
    HOLD = "hold"
    RESET = "reset"
    DRIP = "drip"
    CUT = "cut"


@dataclass(frozen=True, kw_only=True)
class Course:
    """What happens to one call. Delays in milliseconds.

    `applied`: the effect takes place; `effect_after_ms` > 0: not now, but then. `text` is sent as it is.
    `told` is for the operation itself (see `Call`). `gate`: a gate to be passed before the effect, `gate_of_answer`:
    one between the effect and the answer.
    """

    mode: str = "ok"
    applied: bool = True
    ignore_key: bool = False
    before_ms: int = 0
    effect_after_ms: int = 0
    reply_after_ms: int = 0
    reply: Reply = Reply.OWN
    status: int = 200
    body: Json = None
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, Json] = field(default_factory=dict)
    gate: str = ""
    gate_of_answer: str = ""


LOGIN_PAGE = "<html><body><h1>Sign in</h1><p>Your session has ended.</p></body></html>"

MODES: dict[str, Course] = {
    "ok": Course(),
    "refuse": Course(
        applied=False, reply=Reply.CANNED, status=422, body={"error": "refused", "message": "refused"}
    ),
    "fail_before": Course(applied=False, reply=Reply.CANNED, status=500, body={"error": "internal"}),
    "fail_after": Course(reply=Reply.CANNED, status=500, body={"error": "internal"}),
    "no_answer": Course(applied=False, reply=Reply.HOLD, reply_after_ms=FOREVER_MS),
    "applied_no_answer": Course(reply=Reply.HOLD, reply_after_ms=FOREVER_MS),
    "late": Course(reply_after_ms=3_000),
    "late_effect": Course(reply=Reply.HOLD, effect_after_ms=3_000, reply_after_ms=FOREVER_MS),
    "garbage": Course(reply=Reply.CANNED, text=LOGIN_PAGE, headers={"Content-Type": "text/html"}),
    "wrong_schema": Course(reply=Reply.CANNED, body={"unexpected": True}),
    "throttle": Course(
        applied=False,
        reply=Reply.CANNED,
        status=429,
        body={"error": "throttled"},
        headers={"Retry-After": "1"},
    ),
    "slow": Course(before_ms=500),
    "drip": Course(reply=Reply.DRIP, reply_after_ms=FOREVER_MS),
    "ignore_key": Course(ignore_key=True),
    "query_down": Course(applied=False, reply=Reply.CANNED, status=503, body={"error": "unavailable"}),
    "query_absent": Course(applied=False, reply=Reply.CANNED, status=404, body={"error": "not_found"}),
    "huge_body": Course(reply=Reply.CANNED, text="[" + "0," * 4_000_000 + "0]"),
    "not_found": Course(applied=False, reply=Reply.CANNED, status=404, body={"error": "not_found"}),
    "redirect": Course(applied=False, reply=Reply.CANNED, status=302, headers={"Location": "/elsewhere"}),
    "reset": Course(applied=False, reply=Reply.RESET),
    "cut": Course(reply=Reply.CUT),
    "partial": Course(told={"items": (), "item_state": "busy"}),
    "job_fails": Course(told={"fails": True}),
    **{
        f"callback_{how}": Course(told={"callback": how})
        for how in ("early", "duplicate", "stale", "never", "forged")
    },
}

FIELDS = {
    *("tool", "system", "match", "attempts", "per", "times", "share", "seed", "mode", "for_s", "reply"),
    *("status", "body", "delay_ms", "applied", "retry_after_s", "location", "bytes", "items", "item_state"),
    *("told", "gate", "gate_of_answer", "courses", "from"),
}


def problems(rule: Json) -> list[str]:
    """What is wrong with a rule as posted; empty when it can be used."""
    if not isinstance(rule, dict):
        return ["a rule is an object"]
    found = [f"unknown field {name}" for name in sorted(set(rule) - FIELDS)]
    if "courses" in rule:
        return found + _problems_of_courses(rule["courses"])
    if rule.get("mode") not in MODES:
        found.append(f"mode must be one of {', '.join(MODES)}")
    if not isinstance(rule.get("tool", "*"), str):
        found.append("tool is the name of a tool, or *")
    attempts = rule.get("attempts")
    if attempts is not None and not (
        isinstance(attempts, list) and all(type(n) is int and n > 0 for n in attempts)
    ):
        found.append("attempts is a list of numbers from 1")
    for name in ("items", "match"):
        texts = rule.get(name, [])
        one = name == "match" and isinstance(texts, str)
        if not one and not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
            found.append("items is a list of ids" if name == "items" else "match is text, or a list of texts")
    if rule.get("per", "key") not in {"key", "rule"}:
        found.append("per is key or rule")
    for name in ("times", "delay_ms", "bytes", "status"):
        if name in rule and (type(rule[name]) is not int or rule[name] < 0):
            found.append(f"{name} is a whole number")
    if rule.get("reply", Reply.OWN) not in set(Reply):
        found.append(f"reply must be one of {', '.join(Reply)}")
    if "for_s" in rule and not isinstance(rule["for_s"], int | float):
        found.append("for_s is a number of seconds")
    return found


def _problems_of_courses(courses: Json) -> list[str]:
    if not isinstance(courses, list) or not courses:
        return ["courses is a list of rules without tool and match"]
    return [problem for course in courses for problem in problems(course)]


def subject_of(call: Call) -> str:
    """Whose tries are counted together: the key, and for a call without one its address and content."""
    return call.key or f"{call.method} {call.target} {json.dumps(call.body, sort_keys=True)}"


def _wanted(rule: Mapping[str, Json]) -> list[str]:
    match = rule.get("match", [])
    return [match] if isinstance(match, str) else list(match)


def _drawn(rule: Mapping[str, Json], subject: str, attempt: int) -> bool:
    if "share" not in rule:
        return True
    digest = hashlib.sha256(f"{rule.get('seed', 0)}|{subject}|{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < float(rule["share"])


def _course(rule: Mapping[str, Json]) -> Course:
    course = replace(MODES[rule["mode"]], mode=rule["mode"])
    headers = dict(course.headers)
    if "retry_after_s" in rule:
        headers["Retry-After"] = str(rule["retry_after_s"])
    if "location" in rule:
        headers["Location"] = str(rule["location"])
    course = replace(course, headers=headers)
    if "applied" in rule:
        course = replace(course, applied=bool(rule["applied"]))
    if "status" in rule:
        course = replace(course, status=rule["status"])
        if course.reply is Reply.OWN:
            course = replace(course, reply=Reply.CANNED)
    if "body" in rule:
        body = rule["body"]
        if course.mode == "refuse" and isinstance(body, dict):
            body = {"error": "refused", **body}
        course = replace(course, body=body, text=None)
    if "bytes" in rule:
        course = replace(course, text="[" + "0," * (rule["bytes"] // 2) + "0]")
    if "reply" in rule:
        course = replace(course, reply=Reply(rule["reply"]))
    told = {name: rule[name] for name in ("items", "item_state") if name in rule}
    course = replace(course, told={**course.told, **told, **rule.get("told", {})})
    course = replace(course, gate=rule.get("gate", ""), gate_of_answer=rule.get("gate_of_answer", ""))
    return _delayed(course, rule["delay_ms"]) if "delay_ms" in rule else course


def _delayed(course: Course, delay_ms: int) -> Course:
    if course.told:
        return replace(course, told={**course.told, "delay_ms": delay_ms})
    if course.before_ms:
        return replace(course, before_ms=delay_ms)
    if course.effect_after_ms:
        return replace(course, effect_after_ms=delay_ms)
    return replace(course, reply_after_ms=delay_ms)


def _in_turn(courses: list[dict[str, Json]], attempt: int) -> Course:
    """Of courses one after another the one of this try; a course without `attempts` is for all of them."""
    for course in courses:
        from_ = course.get("from", attempt + 1 if "attempts" in course else 1)
        if attempt in course.get("attempts", ()) or attempt >= from_:
            return _course(course)
    return Course()


def choose(tables: Tables, *, tool: str, system: str, call: Call) -> tuple[Course, int]:
    """The course of this call and the number of its try under the rule that decided it (0 = no rule)."""
    subject = subject_of(call)
    haystack = f"{call.key} {call.target} {json.dumps(call.body, ensure_ascii=False)}"
    for id_, rule, used in tables.rules():
        if "until" in rule and clock.now() >= rule["until"]:
            continue
        if rule.get("tool", "*") not in {tool, "*"} or rule.get("system", system) != system:
            continue
        if not all(text in haystack for text in _wanted(rule)):
            continue
        attempt = tables.count_try(id_, subject if rule.get("per", "key") == "key" else "")
        if "courses" in rule:
            tables.use_rule(id_)
            return _in_turn(rule["courses"], attempt), attempt
        if "attempts" in rule and attempt not in rule["attempts"]:
            continue
        if ("times" in rule and used >= rule["times"]) or not _drawn(rule, subject, attempt):
            continue
        tables.use_rule(id_)
        return _course(rule), attempt
    return Course(), 0
