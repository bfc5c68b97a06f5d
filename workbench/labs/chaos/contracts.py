"""The tools of the proving ground: five kinds of contract, and a plain one for the steps around the struck one.

A kind is what a tool does with our key and whether it can be asked; everything else is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

type Json = Any

LIMIT_S = 3.0
"""Seconds that a struck call may take, by the real clock: no busy machine should be taken for a silent world."""
PATIENT_S = 10.0
SETTLE_S = 1.0
PLAIN = "plain"
SIGNED = "place_signed"
"""As of the kind `natural`, and each call wants a person's signature."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How a call and its compensation can be settled once nobody knows what became of them."""

    name: str
    honours_key: bool
    query: str = ""
    place: str = ""
    lift: str = ""

    @property
    def asked(self) -> bool:
        """Whether anybody can ask what became of a call."""
        return bool(self.query)

    @property
    def settles(self) -> bool:
        """Whether an unknown call can be settled without a person, as long as the outside answers."""
        return self.honours_key or self.asked


KINDS: tuple[Kind, ...] = (
    Kind(name="keyed", honours_key=True),
    Kind(name="natural", honours_key=False, query="place"),
    Kind(name="asked", honours_key=False, query="key"),
    Kind(name="blind", honours_key=False),
    Kind(name="later", honours_key=True, query="key", place="provision_line", lift="release_line"),
)
KIND = {kind.name: kind for kind in KINDS}
_PLAIN = Kind(name=PLAIN, honours_key=True, query="key")

ERRORS = {
    "schema": {"type": "object", "required": ["error"]},
    "code": "/error",
    "codes": {"key_reused": "conflict"},
}
RETRY: Json = {
    "temporary": {"max_attempts": 3, "first_delay_s": 0.2},
    "not_sent": {"max_attempts": 20, "first_delay_s": 0.2, "max_delay_s": 5.0},
    "throttled": {"max_attempts": 50, "first_delay_s": 1.0, "factor": 1.0},
}
# What may be tried again after no clear answer: what can be asked about, or repeated under its key.
RETRY_SETTLED: Json = {
    **RETRY,
    **{key: {"max_attempts": 3, "first_delay_s": 0.5} for key in ("no_answer", "server", "garbage")},
}


def documents() -> Iterator[Json]:
    """Every contract, as a document."""
    yield _read("find_placement", "/placements", ("placement", "key", "about"))
    yield _read("find_lifting", "/liftings", ("key", "about"))
    yield _read("find_job", "/jobs", ("job", "key", "about"), system="jobs")
    yield {**_place(KIND["natural"]), "tool": SIGNED, "require_confirmation": True}
    for kind in (_PLAIN, *KINDS):
        yield _place(kind)
        yield _lift(kind)


def from_(source: str, *pointer: str, **more: Json) -> Json:
    """A binding: the value at a pointer of a source."""
    return {"from": source, **({"pointer": "/" + "/".join(pointer)} if pointer else {}), **more}


def _document(
    tool: str, system: str, method: str, path: str, arguments: tuple[str, ...], **more: Json
) -> Json:
    limit_s = PATIENT_S if tool.endswith(f"_{PLAIN}") else LIMIT_S
    return {
        "tool": tool,
        "version": 1,
        "system": system,
        "level": "low",
        "texts": {"title": tool, "done": tool, "question": f"{tool}?", "effect": tool},
        "call": {"adapter": "http", "method": method, "path": path, **more.pop("call", {})},
        "args_schema": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in arguments},
            "required": more.pop("required", list(arguments)),
            "additionalProperties": False,
        },
        "errors": ERRORS,
        "limits": {"connect_s": limit_s, "total_s": limit_s, "body_bytes": 65536},
        **more,
    }


def _read(tool: str, path: str, names: tuple[str, ...], *, system: str = "ground") -> Json:
    return _document(
        tool,
        system,
        "GET",
        path,
        names,
        required=[],
        call={"query": {name: from_("args", name, default="") for name in names}},
        operation="read",
        retry=RETRY_SETTLED,
        effect_kind="read_only",
        recovery_class="retryable",
        result_schema={
            "type": "object",
            "properties": {
                key: {"type": "string"} for key in ("placement", "lifting", "job", "state", "about")
            },
            "required": ["state"],
        },
        idempotency={"support": "none"},
    )


def _place(kind: Kind) -> Json:
    later = kind.name == "later"
    id_ = "job" if later else "placement"
    sent = {"customer": from_("args", "about"), "product": "line"} if later else {}
    document = _document(
        f"place_{kind.name}",
        "jobs" if later else "ground",
        "POST",
        "/jobs" if later else f"/{kind.name}",
        ("about",),
        call={"body": {"about": from_("args", "about"), **sent}},
        operation="place",
        retry=RETRY_SETTLED if kind.settles else RETRY,
        effect_kind="reversible_write",
        recovery_class="compensable",
        reference=f"/{id_}",
        result_schema=_result(id_),
        idempotency=_idempotency(kind),
        compensation={
            "tool": f"lift_{kind.name}",
            "kind": "restores",
            "who": "automatic",
            "args": {id_: from_("result", id_), "about": from_("args", "about")},
            **_looks(kind, id_),
        },
    )
    if kind.asked:
        named = {"key": from_("key")} if kind.query == "key" else {}
        document["status_query"] = {
            "tool": "find_job" if later else "find_placement",
            "args": {**named, "about": from_("args", "about")},
            "found": _state("it is there", ["done", "released"] if later else ["placed", "lifted"]),
            **({"denied": _state("it failed", ["failed", "withdrawn"])} if later else {}),
            "reference": f"/{id_}",
            **_QUERY,
        }
    if later:
        document["statuses"] = {"202": "accepted"}
        document["accepted_answer_s"] = 3.0
        document["callback"] = {
            "secret": "jobs",
            "header": "Callback-Url",
            "key": "/key",
            "reference": "/reference",
            "state": "/state",
            "at": "/at",
            "version": "/version",
            "result": "/result",
            "states": {"done": "confirmed", "failed": "refused", "running": "accepted"},
        }
    return document


_QUERY: Json = {
    "absent_statuses": [404],
    "settle_s": SETTLE_S,
    "first_delay_s": 0.2,
    "every_s": 0.5,
    "max_every_s": 4.0,
}


def _lift(kind: Kind) -> Json:
    later = kind.name == "later"
    id_ = "job" if later else "placement"
    document = _document(
        f"lift_{kind.name}",
        "jobs" if later else "ground",
        "POST",
        "/jobs/{job}/release" if later else f"/{kind.name}/{{placement}}/lifting",
        (id_, "about"),
        call={"body": {"about": from_("args", "about")}},
        operation="lift",
        retry=RETRY_SETTLED if kind.settles else RETRY,
        effect_kind="reversible_write",
        recovery_class="retryable",
        reference=f"/{id_}" if later else "/lifting",
        result_schema=_result(id_) if later else _result("lifting"),
        idempotency=_idempotency(kind),
    )
    if kind.asked and not later:
        by_key = kind.query == "key"
        named = {"key": from_("key")} if by_key else {"placement": from_("args", "placement")}
        document["status_query"] = {
            "tool": "find_lifting" if by_key else "find_placement",
            "args": {**named, "about": from_("args", "about")},
            "found": _state("it is lifted", ["lifted"]),
            **_QUERY,
        }
    return document


def _result(id_: str) -> Json:
    return {
        "type": "object",
        "properties": {key: {"type": "string"} for key in (id_, "state")},
        "required": [id_, "state"],
    }


def _idempotency(kind: Kind) -> Json:
    if kind.honours_key:
        return {"support": "honoured", "header": "Idempotency-Key", "retention_s": 86400}
    return {"support": "ignored", "header": "Idempotency-Key"} if kind.query == "key" else {"support": "none"}


def _looks(kind: Kind, id_: str) -> Json:
    """What is looked at before and after a compensation; only who can be asked can be looked at."""
    if not kind.asked or kind.name in (PLAIN, "asked"):
        return {}
    read = "find_job" if kind.name == "later" else "find_placement"
    args = {id_: from_("result", id_), "about": from_("args", "about")}
    gone = ["released", "withdrawn"] if kind.name == "later" else ["lifted"]
    seen = {"read": read, "args": args}
    return {
        "already_done": {**_state("it is gone already", gone), **seen},
        "verify": {**_state("it is gone", gone), **seen},
    }


def _state(text: str, values: list[str]) -> Json:
    return {"text": text, "pointer": "/state", "operator": "one_of", "value": values}


def definition(name: str, tools: list[str], *, refused: bool) -> Json:
    """A workflow of these tools, a step each; `refused`: a last plain step that the world will refuse."""
    steps = [*tools, f"place_{PLAIN}"] if refused else tools
    given = [f"s{number}" for number in range(1, len(steps) + 1)]
    return {
        "name": name,
        "version": 1,
        "title": name,
        "on_failure": "compensate",
        "input_schema": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in given},
            "required": given,
        },
        "recovery_deadline_s": 600.0,
        "steps": [
            {
                "id": f"s{number}",
                "tool": tool,
                "contract_version": 1,
                "args": {"about": from_("input", f"s{number}")},
            }
            for number, tool in enumerate(steps, start=1)
        ],
    }
