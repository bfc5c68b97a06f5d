"""The published JSON Schema of drill files. Everything about the form of a file; agreement is `tools.drills.rules`'s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tools import drill_words as words
from tools.contract import Json, Meaning
from tools.schema_parts import enum_of, object_of, text_of_up_to

LONGEST = 4000
_ID = "^[A-Za-z][A-Za-z0-9_]{0,30}$"
_TARGET = "^[A-Za-z][A-Za-z0-9_]{0,30}(/[A-Za-z0-9_-]{1,40})?$"
_OF = "^[A-Za-z][A-Za-z0-9_]{0,30}\\.(do|undo|query)$"


def _one_of(known: Iterable[str], what: str) -> Json:
    return {"enum": list(known), "description": what}


def _pattern(pattern: str, what: str) -> Json:
    return {"type": "string", "pattern": pattern, "description": what}


def _count(what: str, *, low: int = 0) -> Json:
    return {"type": "integer", "minimum": low, "maximum": 100_000, "description": what}


def _number(what: str) -> Json:
    return {"type": "number", "minimum": 0, "maximum": 100_000_000, "description": what}


def _yes(what: str) -> Json:
    return {"type": "boolean", "description": what}


def _many(items: Json, what: str, *, least: int = 1) -> Json:
    return {"type": "array", "minItems": least, "items": items, "description": what}


def _map(values: Json, what: str, names: str = _ID) -> Json:
    return {
        "type": "object",
        "propertyNames": {"pattern": names, "description": "a name as used in this file"},
        "additionalProperties": values,
        "description": what,
    }


def _prose(what: str) -> Json:
    return text_of_up_to(what, LONGEST)


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


_STEP = "[a-z][a-z0-9_]{0,30}"
STEP_ID = _pattern(f"^{_STEP}$", "the id of a step")
ITEM_ID = _pattern("^[A-Za-z0-9_-]{1,40}$", "the id of an item")
OF = _pattern(_OF, "STEP.do, STEP.undo or STEP.query")
RUN = _pattern(_ID, "the id of a run")
POINTER = _pattern("^(|/([^~]|~[01])*)$", "a JSON pointer: empty, or starting with a slash")
_OBJECT = {"type": "object", "description": "names and values"}
_MEANINGS = {
    "type": "object",
    "additionalProperties": enum_of(Meaning, "what it means for this tool"),
    "description": "code or status = meaning",
}


def _states(known: Iterable[str], what: str) -> Json:
    one = _one_of(known, what)
    return {
        "description": f"{what}, or a list of which one must be",
        "if": {"type": "array"},
        "then": {"type": "array", "minItems": 1, "items": one},
        "else": one,
    }


RUN_STATES = (
    *("running", "awaiting_approval", "recovering", "compensating", "handoff"),
    *("completed", "compensated", "failed_clean", "closed_accepted"),
)
ACTION_STATES = (
    *("not_started", "prepared", "sent", "confirmed", "rejected", "unknown", "partial"),
    *("compensated", "accepted", "skipped", "superseded"),
)
COMPENSATION_STATES = (
    *("none", "registered", "due", "awaiting_approval", "sent", "confirmed", "unknown", "failed"),
    *("skipped_by_operator", "voided"),
)
RUN_STATE, ACTION_STATE, COMPENSATION_STATE = (
    _ref("run_state"),
    _ref("action_state"),
    _ref("compensation_state"),
)

MOMENT = _ref("moment")
_MOMENT = object_of(
    [],
    {
        "t": _number("seconds of the drill's clock after the start"),
        "during": OF,
        "after": OF,
        "attempt": _count("the number of the call, from 1", low=1),
        "item": ITEM_ID,
        "after_command": _count("the `order` of a command", low=1),
        "after_fault": _pattern(_ID, "the `id` of a fault"),
        "workflow_state": _one_of(RUN_STATES, "a state of a run"),
        "action": STEP_ID,
        "compensation": STEP_ID,
        "is": _one_of(dict.fromkeys((*ACTION_STATES, *COMPENSATION_STATES)), "a state"),
        "point": _pattern("^[a-z][a-z_.]{2,60}$", "the name of a point of the engine"),
        "of": OF,
        "nth": _count("the how-manieth time, from 1", low=1),
        "rest": {"const": True},
        "end": {"const": True},
        "start": {"const": True},
        "plus_s": _number("so many seconds of the drill's clock later"),
        "run": RUN,
    },
    "when: exactly one of the moments",
)

_CHANGE = _ref("change")
_CHANGE_IS = object_of(
    [],
    {
        "compensation_tool": _map(_prose("the tool that makes up for the step from now on"), "step = tool"),
        "remove_steps": _many(STEP_ID, "steps that the new version does not have"),
        "insert_steps": _many(_ref("step"), "steps that the new version has besides"),
        "before": STEP_ID,
        "class": _map(_one_of(words.CLASSES, "what kind of effect it has"), "step = class"),
        "args_schema": _map(_OBJECT, "step = properties that the tool takes besides"),
        "text": _map(_prose("the title of the tool"), "step = title"),
    },
    "what is different in the new version",
)


def _tagged(tag: str, kinds: Mapping[str, tuple[list[str], Json]], shared: Json, what: str) -> Json:
    """One object for each word of `tag`, with the fields of that word and the shared ones; an unknown word lists all."""
    return {
        "type": "object",
        "required": [tag],
        "properties": {tag: _one_of(kinds, what)},
        "allOf": [
            {
                "if": {"properties": {tag: {"const": word}}, "required": [tag]},
                "then": object_of([tag, *required], {tag: {"const": word}, **shared, **fields}),
            }
            for word, (required, fields) in kinds.items()
        ],
        "description": what,
    }


# --- Steps ------------------------------------------------------------------------------------------------------------

_TOOL = _pattern("^[a-z][a-z0-9_]{0,40}$", "the name of a tool: small letters, digits and _")
_STEP_COMPENSATION = object_of(
    ["tool"],
    {
        "tool": _TOOL,
        "needs_approval": _yes("whether somebody signs before it runs"),
        "kind": _one_of(("restores", "offsets", "mitigates"), "what it achieves"),
        "max_attempts": _count("tries in all", low=1),
        "downstream_key": _one_of(words.KEYS, "what the system does with the key of the compensation"),
        "natural": _yes("whether the same call again changes nothing"),
        "checked": _yes("whether the effect is looked at before and after"),
        "only_after": _many(STEP_ID, "steps whose effect must be gone before: its precondition"),
        "codes": _MEANINGS,
        "statuses": _MEANINGS,
        "leaves": _prose("what stays all the same"),
    },
    "what makes up for the step",
)
_STEP_IS = object_of(
    ["id", "tool", "class"],
    {
        "id": STEP_ID,
        "tool": _TOOL,
        "class": _one_of(words.CLASSES, "what kind of effect it has"),
        "compensation": {
            "if": {"type": "null"},
            "then": True,
            "else": _STEP_COMPENSATION,
            "description": "what makes up for the step, or null",
        },
        "downstream_key": _one_of(words.KEYS, "what the system does with our key"),
        "status_query": _one_of(words.QUERIES, "how the system can be asked"),
        "read_by_ref": _yes("whether a thing can be read by its reference"),
        "settle_after_s": _number("an answer `not found` proves nothing before, in seconds"),
        "key_retention_h": _number("hours that the system keeps a key"),
        "max_attempts": _count("tries in all", low=1),
        "first_delay_s": _number("seconds before the second try"),
        "query_every_s": _number("seconds between two queries"),
        "limit_s": _number("seconds of the wall clock that a call may take"),
        "group": _pattern(_ID, "steps of one group run beside each other"),
        "items": _many(ITEM_ID, "one call over many: the items it carries"),
        "loop": _many(ITEM_ID, "one call for each of these, one after another"),
        "asynchronous": _yes("whether the answer is 202 and the result follows"),
        "answer_within_s": _number("seconds within which the result must have come"),
        "callback": _yes("whether the result comes by callback"),
        "approval_required": _yes("whether somebody signs before the call"),
        "approval_valid_h": _number("hours that a signature is good for"),
        "if_not_approved": _one_of(("fail", "skip"), "what a refusal leads to"),
        "uses_output_of": _many(STEP_ID, "earlier steps whose reference goes along as an argument"),
        "args": _OBJECT,
        "secret_args": _many(_prose("the name of an argument"), "arguments that nobody may see"),
        "codes": _MEANINGS,
        "statuses": _MEANINGS,
        "on_failure": _one_of(words.ON_FAILURE, "what a definite failure of this step leads to"),
        "answer_limit_bytes": _count("the largest answer that is read", low=1) | {"maximum": 16_777_216},
        "level": _one_of(("low", "medium", "high", "critical"), "how much is at stake"),
    },
    "one tool call of the workflow and the rules of its tool",
)
_WORKFLOW = object_of(
    ["steps"],
    {
        "on_failure": _one_of(words.ON_FAILURE, "what a definite failure leads to"),
        "steps": _many(_ref("step"), "the steps, in order"),
        "definition_version": _pattern("^v?[0-9]{1,4}$", "the version that the runs start with"),
        "files": object_of(
            ["definition"],
            {
                "definition": _prose("a definition file, beside the drill or under the project's root"),
                "input": _OBJECT,
            },
            "a definition of the product instead of generated ones; its steps are named in `steps` all the same",
        ),
        "amount": _prose("the amount at stake, as text"),
        "team": _prose("the team that settles its handoffs"),
        "deadline_min": _number("minutes until a handoff is due, of the team's working time"),
        "calendar": object_of(
            ["time_zone", "hours"],
            {
                "time_zone": _prose("an IANA time zone"),
                "hours": _OBJECT,
                "holidays": _many(_pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "a day"), "days off", least=0),
                "remind_at": _number("the share of the limit after which the team is reminded"),
                "chain": _many(_OBJECT, "to whom it goes, and how many working minutes after the one before"),
            },
            "when the team works, as a team file says it; needs `team`",
        ),
    },
    "the workflow",
)

# --- What happens -----------------------------------------------------------------------------------------------------

_WHICH_RUNS = {"run": RUN, "runs": _many(RUN, "only these runs")}
_ATTEMPT = {
    "description": "a number from 1, or a text like 2+ for that one and all later ones",
    "if": {"type": "string"},
    "then": _pattern("^[1-9][0-9]{0,4}\\+$", "a number and a plus"),
    "else": _count("a number from 1", low=1),
}
_QUERY_ANSWER = object_of(
    ["verdict"],
    {"verdict": _one_of(words.ANSWERS, "what the query is told"), "ref": _prose("the reference it names")},
    "what a query is told",
)
_DOWNSTREAM = object_of(
    ["on", "behaviour"],
    {
        **_WHICH_RUNS,
        "on": OF,
        "attempt": _ATTEMPT,
        "item": ITEM_ID,
        "reference": _prose("only queries for this reference"),
        "behaviour": _one_of(words.BEHAVIOURS, "what the system does"),
        "after_s": _number("seconds of the drill's clock until it happens"),
        "applied": _yes("whether it took effect all the same"),
        "http": {"type": "integer", "minimum": 100, "maximum": 599, "description": "a status"},
        "code": _prose("the system's own code"),
        "retry_after_s": _number("seconds"),
        "kind": _one_of(words.GARBAGE, "what the garbage is"),
        "items": _map(
            _one_of(words.ITEM_ANSWERS, "what an item is answered"), "item = answer", "^[A-Za-z0-9_-]+$"
        ),
        "ref": _prose("the reference that the answer names"),
        "bytes": _count("how large the answer is") | {"maximum": 100_000_000},
        "text": _prose("the sentence in the answer"),
        "answer": _QUERY_ANSWER,
        "result": _OBJECT,
        "together_with": OF,
        "note": _prose("anything for the reader"),
    },
    "what the other side does with a call",
)

_PROCESS = {
    "process": _one_of(words.PROCESSES, "which process"),
    "then": _one_of(("start",), "what is done right after"),
    "environment": _map(_prose("its value"), "variables that the new process gets", "^[A-Z][A-Z0-9_]+$"),
    "for_s": _number("seconds of the wall clock"),
    "times": _count("how many", low=1),
    "together": _yes("whether the processes of the system are all meant"),
}
_CALLBACK_ARGS = object_of(
    [],
    {
        "state": _one_of(
            ("done", "failed", "pending", "withdrawn"), "what the provider says has become of it"
        ),
        "ref": _prose("the provider's reference"),
        "by": _one_of(("key", "ref", "both"), "how the callback names the call"),
        "sent_s": {"type": "number", "description": "the sender's time, in seconds after the start"},
        "version": _count("the sender's version"),
        "settles": _yes("whether it is true: a stale or wrong one says what has not become of it"),
        "forged": _yes("whether it is signed with another secret"),
    },
    "what a callback says",
)
_ROLES = _many(
    _one_of(
        ("operator", "lead", "approver", "auditor", "owner", "admin", "agent", "api", "callback"), "role"
    ),
    "roles",
    least=0,
)
_FAULT_KINDS: Mapping[str, tuple[list[str], Json]] = {
    **{word: (["process"], _PROCESS) for word in ("kill", "pause", "wake", "stop", "start", "restart")},
    **dict.fromkeys(
        ("broker_emptied", "broker_down", "broker_up", "broker_restart", "note", "system_down", "system_up"),
        ([], {}),
    ),
    "bell": ([], {"times": _count("how many", low=1), "workers": _count("from how many senders", low=1)}),
    "sweeps": (["times"], {"times": _count("how many", low=1)}),
    "store_refuses": (
        ["of"],
        {"of": _one_of(words.STORED, "what is refused"), "times": _count("how often", low=1)},
    ),
    "commit_delayed": (
        ["of", "seconds"],
        {
            "of": _one_of(words.STORED, "whose commit"),
            "seconds": _number("seconds of the wall clock"),
            "bells": _yes("whether wake-up messages come in meanwhile"),
        },
    ),
    "clock_forward": (["seconds"], {"seconds": _number("seconds")}),
    "publish_definition": (["change"], {"change": _CHANGE}),
    "publish_contract": (["step", "change"], {"step": STEP_ID, "change": _CHANGE}),
    **dict.fromkeys(("withdraw_tool", "restore_tool"), (["tool"], {"tool": _TOOL})),
    "change_roles": (["actor", "roles"], {"actor": _pattern(_ID, "an actor"), "roles": _ROLES}),
    "disable_person": (["actor"], {"actor": _pattern(_ID, "an actor")}),
    "callback": (["step", "args"], {"step": STEP_ID, "args": _CALLBACK_ARGS, "times": _count("how often")}),
    "third_party": (
        ["step", "becomes"],
        {"step": STEP_ID, "item": ITEM_ID, "becomes": _one_of(("gone", "undone"), "what it is now")},
    ),
    "heal": (["of"], {"of": OF}),
    "answer": (["of", "answer"], {"of": OF, "answer": _QUERY_ANSWER}),
}
_FAULT = _tagged(
    "what",
    _FAULT_KINDS,
    {
        **_WHICH_RUNS,
        "id": _pattern(_ID, "a name that claims can refer to"),
        "at": MOMENT,
        "note": _prose("anything for the reader"),
    },
    "what goes wrong",
)

_COMMAND = object_of(
    ["order", "actor", "command", "expected_result"],
    {
        **_WHICH_RUNS,
        "order": _count("its place among the commands, from 1", low=1),
        "actor": _pattern(_ID, "an actor"),
        "command": _ref("command"),
        "target": _pattern(
            "^(workflow|handoff|undo [A-Za-z][A-Za-z0-9_]{0,30}|[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)?)$",
            "workflow, handoff, a step, STEP/ITEM, `undo STEP`, an actor, or the key of a request",
        ),
        "args": _OBJECT,
        "reason": _prose("the reason that goes along"),
        "expected_result": {
            "if": {"type": "array"},
            "then": {
                "type": "array",
                "minItems": 1,
                "items": _one_of(words.RESULTS, "how it is answered"),
            },
            "else": _one_of(words.RESULTS, "how it is answered"),
            "description": "how it is answered, or a list of which one must be",
        },
        "expected_code": _many(_prose("a stable code"), "the code of the answer: one of these"),
        "expected_says": _many(_prose("a text"), "texts that the answer contains"),
        "at": MOMENT,
        "concurrent_with": _count("the `order` of a command that is given at the same moment", low=1),
        "form_token": _pattern(_ID, "commands with the same token carry the same id"),
        "base_version": _one_of(("fresh", "stale", "start"), "which version its author saw"),
        "page_of": _count("its author saw the page before this command", low=1),
        "via": _one_of(("dispatcher", "api", "page"), "through which door"),
        "change": _CHANGE,
        "count": _count("how many runs a bulk command names"),
        "times": _count("how often it is given at the same moment", low=1),
        "note": _prose("anything for the reader"),
    },
    "what somebody asks for",
)

# --- What must hold ---------------------------------------------------------------------------------------------------

_BOUND = {
    "exactly": _count("exactly so many"),
    "at_least": _count("at least so many"),
    "at_most": _count("at most so many"),
}
_ENTRY_FIELDS = {
    "actor": _prose("system, an actor, or anybody"),
    "action": _ref("word"),
    "target": _pattern(_TARGET, "a step, or STEP/ITEM"),
    "says": _many(_prose("a text"), "texts that the entry contains"),
}
_ENTRY = _ref("entry")
_ENTRY_IS = object_of(
    ["action"],
    {**_ENTRY_FIELDS, **_BOUND, **_WHICH_RUNS, "note": _prose("anything for the reader")},
    "an entry",
)
_EFFECTS = object_of(
    [],
    {
        "do": _count("how often it took effect"),
        "undo": _count("how often that was made up for"),
        "total": _count("how often in all, over its items"),
        "items": _map(
            object_of([], {"do": _count("done"), "undo": _count("made up for")}),
            "item = effects",
            "^[A-Za-z0-9_-]+$",
        ),
    },
    "how often a step took effect outside",
)
_OFFERED = _ref("offered")
_OFFERED_IS = _map(
    _many(_ref("command"), "commands", least=0),
    "workflow or a step = commands",
    "^(workflow|[A-Za-z][A-Za-z0-9_]{0,30}(/[A-Za-z0-9_-]{1,40})?)$",
)
_HANDOFF = _ref("handoff")
_HANDOFF_IS = object_of(
    ["present"],
    {
        "present": _yes("whether a person is asked"),
        "reason": _many(_prose("a stable code"), "the code of the reason: one of these"),
        "about": STEP_ID,
        "claimed_by": _prose("an actor, or nobody"),
        "allowed_actions": _OFFERED,
        "not_offered": _OFFERED,
        "refusal_codes": _map(
            _map(_prose("a stable code"), "command = code", "^[a-z_]+$"),
            "workflow or a step = {command: code}",
            "^(workflow|[A-Za-z][A-Za-z0-9_]{0,30})$",
        ),
        "asked_as": _pattern(_ID, "the actor for whom the offers are looked at"),
        "says": _many(_prose("a text"), "texts that its page shows"),
        "note": _prose("anything for the reader"),
    },
    "the handoff of the run",
)
_ACTIONS = _ref("actions")
_ACTIONS_ARE = _map(
    {
        "if": {"type": "object"},
        "then": _map(ACTION_STATE, "item = state", "^[A-Za-z0-9_-]+$"),
        "else": ACTION_STATE,
        "description": "a state, a list of states, or {item: state}",
    },
    "step = state",
)
_COMPENSATIONS_ARE = _map(
    {
        "if": {"type": "object"},
        "then": _map(COMPENSATION_STATE, "item = state", "^[A-Za-z0-9_-]+$"),
        "else": COMPENSATION_STATE,
        "description": "a state, a list of states, or {item: state}",
    },
    "step = state of its compensation",
)
_STANDING = {
    "workflow_state": RUN_STATE,
    "agent_state": _prose("the state as the agent is told it"),
    "actions": _ACTIONS,
    "compensations": _ref("compensations"),
    "handoff": _HANDOFF,
}
_MARK = _ref("mark")
_MARK_IS = object_of(
    [],
    {
        "call": OF,
        "answer": OF,
        "effect": OF,
        "attempt": _count("the number of the call, from 1", low=1),
        "entry": _ref("word"),
        "target": _pattern(_TARGET, "a step, or STEP/ITEM"),
        "nth": _count("the how-manieth, from 1", low=1),
        "fault": _pattern(_ID, "the `id` of a fault"),
        "command": _count("the `order` of a command", low=1),
        "start": {"const": True},
        "finish": {"const": True},
    },
    "one mark in time",
)
_OFS = _many(OF, "calls")
_CLAIM_KINDS: Mapping[str, tuple[list[str], Json]] = {
    "calls": (["of"], {"of": OF, "item": ITEM_ID, "since": MOMENT, **_BOUND}),
    "effects": (["of"], {"of": OF, "item": ITEM_ID, "since": MOMENT, **_BOUND}),
    "effects_order": (
        ["of"],
        {"of": _many(_pattern("^.+\\.(do|undo)(/.+)?$", "a call, or CALL/ITEM"), "calls")},
    ),
    "waits": (["of"], {"of": _many(_pattern("^.+\\.(do|undo)(/.+)?$", "a call, or CALL/ITEM"), "calls")}),
    "keys": (["of", "distinct"], {"of": OF, "item": ITEM_ID, "distinct": _count("how many", low=1)}),
    "key_without": (["of"], {"of": OF, "words": _many(_prose("a text"), "texts")}),
    "key_kept_before": (["of"], {"of": OF}),
    "sent": (
        ["of", "pointer"],
        {
            "of": OF,
            "attempt": _count("the number of the call", low=1),
            "pointer": POINTER,
            "equals": {"description": "the value"},
            "absent": _yes("whether nothing stands there"),
        },
    ),
    "attempts": (["of"], {"of": OF, "item": ITEM_ID, **_BOUND}),
    "attempts_match": ([], {"of": _OFS}),
    "never": (
        [],
        {
            "workflow_state": RUN_STATE,
            "action": STEP_ID,
            "compensation": STEP_ID,
            "is": {"description": "a state, or a list of states"},
            "item": ITEM_ID,
            "before": _MARK,
            "after": _MARK,
        },
    ),
    "seen": (["at"], {"at": MOMENT, **_STANDING}),
    "time": (
        ["from", "to"],
        {
            "from": _MARK,
            "to": _MARK,
            "at_most_s": _number("seconds"),
            "at_least_s": _number("seconds"),
            "clock": _one_of(("drill", "wall"), "which clock; the drill's when nothing is said"),
        },
    ),
    "entry": (["action"], {**_ENTRY_FIELDS, **_BOUND, "reason": _prose("the reason on record")}),
    "entries_order": (["first", "then"], {"first": _ENTRY, "then": _ENTRY}),
    "offer": (
        ["actor", "command", "allowed"],
        {
            "at": MOMENT,
            "actor": _pattern(_ID, "an actor"),
            "command": _ref("command"),
            "target": _pattern(_TARGET, "a step, or STEP/ITEM"),
            "allowed": _yes("whether it is possible"),
            "code": _prose("a stable code"),
        },
    ),
    "preview": (
        ["actor", "command"],
        {
            "at": MOMENT,
            "actor": _pattern(_ID, "an actor"),
            "command": _ref("command"),
            "target": _pattern(_TARGET, "a step, or STEP/ITEM"),
            "calls": {"type": "array", "items": OF, "description": "exactly these calls, in order"},
            "items": _many(ITEM_ID, "the items that they carry"),
            "says": _many(_prose("a text"), "texts that its page shows"),
        },
    ),
    "page": (
        ["actor", "page"],
        {
            "at": MOMENT,
            "actor": _pattern(_ID, "an actor"),
            "page": _one_of(words.PAGES, "which page"),
            "status": _count("the HTTP status"),
            "says": _many(_prose("a text"), "texts that it shows"),
            "says_not": _many(_prose("a text"), "texts that it does not show"),
            "within_s": _number("seconds of the wall clock"),
        },
    ),
    "stored": (
        [],
        {
            "at_most_bytes": _count("bytes") | {"maximum": 100_000_000},
            "words": _many(_prose("a text"), "texts that are nowhere"),
            "places": _many(
                _one_of(("entry", "outbox", "broker", "run", "log", "everywhere"), "a place"), "where"
            ),
        },
    ),
    "provider_ref": (
        ["of"],
        {"of": STEP_ID, "item": ITEM_ID, "equals": _prose("the reference"), "present": _yes("is there one")},
    ),
    "compensation_tool": (["of", "tool"], {"of": STEP_ID, "tool": _TOOL}),
    "registered_before_call": (["of"], {"of": OF}),
    "versions": ([], {"run_has": _count("a version", low=1), "newest": _count("a version", low=1)}),
    "next_run": (["steps"], {"steps": _many(STEP_ID, "exactly these, in order")}),
    "lint": (["code"], {"code": _prose("a code of the lint")}),
    "alarm": (["code"], {"code": _prose("a code of an alarm"), "at": MOMENT, "in_force": _yes("is it on")}),
    "linked_handoff": (["present"], {"present": _yes("is there one")}),
    "answers_equal": (["commands"], {"commands": _many(_count("an order", low=1), "commands")}),
    "one_accepted": (
        ["commands"],
        {
            "commands": _many(_count("an order", low=1), "commands"),
            "or_none": _yes("whether none of them may be accepted too, because something else came first"),
        },
    ),
    "handoffs": ([], _BOUND),
    "rate": (
        ["of", "at_most_per_s", "over_s"],
        {"of": OF, "at_most_per_s": _number("calls a second"), "over_s": _number("seconds"), "since": MOMENT},
    ),
    "spread": (["of"], {"of": OF}),
    "result": (
        ["of"],
        {"of": STEP_ID, "state": _prose("its state"), "says": _many(_prose("a text"), "texts")},
    ),
    "processes": ([], {"at_most": _count("how often one may be started again")}),
    "laws": ([], {}),
}
_CLAIM = _tagged(
    "claim",
    _CLAIM_KINDS,
    {
        **_WHICH_RUNS,
        "text": _prose("the sentence that it stands for"),
        "note": _prose("anything for the reader"),
    },
    "what must hold",
)
_EXPECTED_FIELDS = {
    **_STANDING,
    "external_effects": _map(_EFFECTS, "step = effects outside"),
    "audit_must_contain": _many(_ENTRY, "entries that are there", least=0),
    "events_must_contain": _many(_ENTRY, "entries that were published, as events", least=0),
    "must_not": _many(_ref("claim"), "what keeps away what must not happen; each must hold", least=0),
    "also": _many(_ref("claim"), "what else must hold", least=0),
}
_EXPECTED = object_of(
    [],
    {
        **_EXPECTED_FIELDS,
        "runs": _map(
            object_of([], _EXPECTED_FIELDS, "what holds for this run"), "run = what holds for this run alone"
        ),
    },
    "what must hold at the end, for every run",
)

DRILL_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:amends:schema:drill",
    "title": "A drill: a scenario and what must hold after it",
    **object_of(
        ["id", "title", "scenario", "expected"],
        {
            "id": _pattern("^[a-z0-9][a-z0-9-]{0,80}$", "the id: small letters, digits and -"),
            "source": _prose("where it was reported"),
            "also_reported_in": _many(_prose("where else"), "where else it was reported", least=0),
            "evidence": _one_of(words.EVIDENCE, "how well it is attested"),
            "area": _one_of(words.AREAS, "which part of the product it is about"),
            "title": _prose("what it is, in one sentence"),
            "what_happened": _prose("what happened to others"),
            "kind_of_fault": _prose("the kind of fault"),
            "why_hard": _prose("why it is easy to get wrong"),
            "notes": _many(
                object_of(
                    ["text", "reason"],
                    {
                        "text": _prose("what is not asserted"),
                        "reason": _prose("why a machine cannot assert it"),
                    },
                    "what is not asserted, and why",
                ),
                "what is not asserted, and why",
                least=0,
            ),
            "time_limit_s": _number("seconds of the wall clock after which the drill has failed"),
            "scenario": object_of(
                ["workflow"],
                {
                    "begins_at": _pattern(
                        "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
                        "what the clock shows when the drill begins, in UTC; without it, what it shows now",
                    ),
                    "workflow": _WORKFLOW,
                    "downstream": _many(_DOWNSTREAM, "what the other side does", least=0),
                    "faults": _many(_ref("fault"), "what goes wrong", least=0),
                    "actors": _map(_ROLES, "actor = roles"),
                    "commands": _many(_COMMAND, "what people, agents and providers ask for", least=0),
                    "runs": _many(
                        object_of(
                            ["id"],
                            {
                                "id": RUN,
                                "count": _count("how many of it, all at once", low=1),
                                "ordinary": _yes("whether nothing of `downstream` concerns it"),
                                "note": _prose("anything for the reader"),
                            },
                            "a run of the same scenario with a difference",
                        ),
                        "the runs; one named W when nothing is said",
                    ),
                },
                "what happens",
            ),
            "expected": _EXPECTED,
        },
    ),
    "$defs": {
        "moment": _MOMENT,
        "mark": _MARK_IS,
        "step": _STEP_IS,
        "fault": _FAULT,
        "claim": _CLAIM,
        "change": _CHANGE_IS,
        "entry": _ENTRY_IS,
        "handoff": _HANDOFF_IS,
        "offered": _OFFERED_IS,
        "actions": _ACTIONS_ARE,
        "compensations": _COMPENSATIONS_ARE,
        "run_state": _states(RUN_STATES, "a state of a run"),
        "action_state": _states(ACTION_STATES, "a state of an action"),
        "compensation_state": _states(COMPENSATION_STATES, "a state of a compensation, or none"),
        "word": _one_of((*words.ENTRIES, *words.COMMAND_ENTRIES), "the neutral word of an entry"),
        "command": _one_of(words.COMMANDS, "a command"),
    },
}
