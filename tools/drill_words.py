"""Every word of a drill file, each with its meaning in one sentence: the schema, the guide and the runner read these.

The neutral words of audit actions and events are mapped here, and nowhere else, to the names of the product's entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

AREAS = (
    *("engine", "compensation", "operator", "approvals", "audit-events", "api-agents", "operations"),
    "example",
)
EVIDENCE = ("strong", "medium", "weak", "none")

CLASSES: Mapping[str, str] = {
    "read": "it reads; a repeat harms nobody and there is nothing to make up for",
    "idempotent": "the same call again changes nothing",
    "compensable": "an effect that `compensation` makes up for",
    "irreversible": "an effect that nothing takes back",
}
ON_FAILURE: Mapping[str, str] = {
    "undo": "a definite failure starts the compensation",
    "handoff": "a definite failure goes to a person",
    "continue": "the run goes on without it",
}
KEYS: Mapping[str, str] = {
    "honoured": "a repeat under the same key gets the first answer again",
    "ignored": "the key is taken and not looked at",
    "none": "no key can be given",
}
QUERIES: Mapping[str, str] = {
    "by_key": "the system can be asked for our key",
    "by_natural_key": "the system can be asked for what the call was about",
    "none": "the system cannot be asked",
}

BEHAVIOURS: Mapping[str, str] = {
    "ok": "the call takes effect and is answered, after `after_s` seconds of the drill's clock",
    "late": "the same, said of a call that is slow",
    "timeout-but-applied": "it takes effect, and no answer comes",
    "timeout-not-applied": "nothing happens, and no answer comes",
    "reject": "a definite no (`http`, `code`); nothing happens",
    "5xx": "a server error (`http`); `applied` says whether it took effect",
    "429": "too fast; nothing happens (`retry_after_s`)",
    "garbage": "an answer that is none (`kind`); `applied` says whether it took effect",
    "partial": "a call over many: `items` says what each one is answered",
    "accepted": "202: the work has begun, its result comes by callback or query",
}
GARBAGE: Mapping[str, str] = {
    "html": "a page instead of JSON, with the status `http`",
    "cut": "the connection closes in the middle of the answer",
    "other_json": "JSON of another shape",
}
ITEM_ANSWERS: Mapping[str, str] = {
    "ok": "took effect",
    "reject": "a definite no",
    "timeout-but-applied": "took effect, but its answer does not say so",
    "timeout-not-applied": "nothing happened, and its answer does not say so",
    "missing": "nothing happened, and it is not in the answer",
}
ANSWERS: Mapping[str, str] = {
    "truth": "what has happened to it",
    "found": "it took effect",
    "absent": "there is no such thing (404)",
    "denied": "it was refused for good",
    "pending": "it is still being worked on (202)",
}

PROCESSES: Mapping[str, str] = {
    "worker": "a worker with its pool",
    "owner": "the worker that holds the run",
    "sweep": "the process that finds what should move",
    "relay": "the process that publishes events",
    "database": "PostgreSQL",
    "all_workers": "every worker",
}

RESULTS: Mapping[str, str] = {
    "accepted": "it is taken and recorded",
    "duplicate": "it had been taken before; the same answer again, nothing happened now",
    "conflict": "the state does not allow it, or has moved on",
    "forbidden": "this person may not",
    "invalid": "something in it is wrong or missing",
    "frozen": "a freeze covers it",
    "expired": "what it refers to has expired",
    "busy": "others work on it at this moment",
    "not_found": "there is no such thing",
    "shown": "a page or an export came",
    "failed_nothing_changed": "an error, and nothing was changed or promised",
    "kept": "a callback that fits no call yet was kept",
    "recorded": "a callback was kept as evidence",
}

COMMANDS: Mapping[str, str] = {
    "claim": "take the handoff on",
    "release": "give it back",
    "comment": "leave a note",
    "query_status": "have the tool asked now",
    "retry": "make a rejected call again",
    "edit_and_retry": "the same with other arguments (`args`)",
    "resolve_happened": "state that it took effect (`args.reference`)",
    "resolve_not_happened": "state that it did not",
    "compensate": "run the compensation of a step, or of all",
    "skip_compensation": "leave a failed compensation out",
    "mark_acceptable": "close the case as it is",
    "escalate": "raise it by a level",
    "stop_and_compensate": "stop the run and make up for what it did",
    "resume": "let the run go on",
    "approve": "sign what is asked",
    "reject": "say no to it",
    "freeze": "stop calls (`args.scope`, `args.applies_to`)",
    "unfreeze": "let them go on",
    "start": "start the run; `target` is the key of the request",
    "callback": "the provider calls back about a step (`args`)",
    "publish_definition": "publish a new version of the workflow (`change`)",
    "publish_contract": "publish a new version of a step's contract (`change`)",
    "withdraw_tool": "take a tool out of service",
    "restore_tool": "put it back",
    "disable_person": "switch an account off",
    "delete_person": "ask for an account to be deleted",
    "change_roles": "give a person these roles (`args.roles`)",
    "view_page": "open a page (`args.page`)",
    "export_trail": "export the trail of the run",
    "bulk_retry": "retry many runs at once",
    "bulk_mark_acceptable": "accept many runs at once",
}
BY_SYSTEM = frozenset({"publish_definition", "publish_contract", "withdraw_tool", "restore_tool"})

FAULTS: Mapping[str, str] = {
    "kill": "SIGKILL to a process and all its children; it stays dead unless `then` says start",
    "pause": "SIGSTOP to a process, as long as `for_s` says, or until `wake`",
    "wake": "SIGCONT",
    "stop": "SIGTERM: a polite end",
    "start": "one more process of this kind",
    "restart": "SIGTERM, then a new one (`environment` adds to what it is given)",
    "broker_emptied": "every message is lost at once",
    "broker_down": "the broker ends",
    "broker_up": "the broker comes back, empty",
    "broker_restart": "both, at once",
    "bell": "the run's wake-up message is delivered `times` times at once: doubled, early, stale or restored ones",
    "sweeps": "`times` looks for dead workers at the same moment, from different processes",
    "store_refuses": "the database refuses what `of` names, for this run, until `times` refusals were seen",
    "commit_delayed": "the commit of what `of` names takes `seconds` longer, for this run",
    "clock_forward": "the database's clock jumps by `seconds`",
    "publish_definition": "a new version of the workflow (`change`)",
    "publish_contract": "a new version of a step's contract (`change`)",
    "withdraw_tool": "a tool is taken out of service",
    "restore_tool": "it is put back",
    "change_roles": "a person gets other roles",
    "disable_person": "an account is switched off",
    "callback": "the provider calls back about a step, `times` times",
    "third_party": "somebody else changes what a step made: `becomes` gone or undone",
    "system_down": "the systems behind the tools refuse every connection",
    "system_up": "they are back",
    "answer": "from now on a query of `of` is told this",
    "heal": "from now on every call of `of` goes well",
    "note": "nothing: a mark that a claim can refer to",
}
STORED: Mapping[str, str] = {
    "entry": "the record of what happened",
    "outbox": "the row that an event is published from",
    "receipt": "the answer kept for a command's id",
    "attempt": "the try written before the call",
}

MOMENTS: Mapping[str, str] = {
    "t": "so many seconds of the drill's clock after the start",
    "during": "a call has arrived outside (`attempt`, `item`) and is held there",
    "after": "a call has been answered; the run goes on meanwhile",
    "after_command": "the command with this `order` has been answered",
    "after_fault": "the fault with this `id` has been done",
    "workflow_state": "the run is in this state",
    "action": "a step is in the state that `is` names",
    "compensation": "the compensation of a step is in the state that `is` names",
    "point": "a process passes this named point of the engine (`of` says in which call)",
    "rest": "nothing more happens by itself",
    "end": "all commands are answered and nothing more happens by itself",
    "start": "before the run starts",
}

CLAIMS: Mapping[str, str] = {
    "calls": "how many calls of `of` arrived outside",
    "effects": "how often `of` took effect outside",
    "effects_order": "the calls took effect in this order",
    "waits": "each was sent only after the one before it had been answered",
    "keys": "how many different keys the calls of `of` carried",
    "key_without": "no key of `of` contains any of `words`, nor a time, a host or a process",
    "key_kept_before": "the key was on record before the call left",
    "sent": "what a call of `of` carried at `pointer`",
    "attempts": "how many tries the engine recorded for `of`",
    "attempts_match": "every call that arrived is a try on record, and the other way round",
    "never": "no run, action or compensation was ever in this state",
    "seen": "how things stood at a moment: states, handoff",
    "time": "how long from one mark to another",
    "entry": "how many entries of this kind there are",
    "entries_order": "one entry stands before another",
    "offer": "whether a command is possible for somebody, and with what code it is refused",
    "preview": "which calls a preview announces, and what it says is left",
    "page": "what a page shows, and how fast",
    "stored": "no stored row is larger than `at_most_bytes`, or none holds any of `words`",
    "provider_ref": "the reference on record for a step",
    "compensation_tool": "the tool that is registered to make up for a step",
    "registered_before_call": "the compensation was on record before the first call arrived outside",
    "versions": "the version of the workflow that the run belongs to, and the newest there is",
    "next_run": "which steps a run started now would have",
    "lint": "publishing the workflow warns with this code",
    "alarm": "an alarm is in force at a moment",
    "linked_handoff": "whether a handoff stands beside a closed run",
    "answers_equal": "these commands were answered alike, except for the word of the result",
    "one_accepted": "exactly one of these commands was accepted",
    "handoffs": "how many handoffs the run has had",
    "rate": "never more calls a second than this, over any window of `over_s`",
    "spread": "the waiting times before the calls of `of` are not all alike",
    "result": "what the agent is told of a step",
    "processes": "the processes are alive, and none was started again more than `at_most` times",
    "laws": "states and entries agree, nobody is without an owner, every entry has an actor",
}

MARKS: Mapping[str, str] = {
    "call": "the arrival of a call outside (`attempt`)",
    "answer": "the moment its answer left (`attempt`)",
    "effect": "the moment it took effect outside",
    "entry": "an entry (`action`, `target`, `nth`)",
    "fault": "the moment the fault with this id was done",
    "command": "the answer to the command with this order",
    "start": "the start of the run",
    "finish": "the end of the run",
}

PAGES: Mapping[str, str] = {
    "queue": "the list of handoffs",
    "handoff": "the page of the run's handoff",
    "run": "the page of the run",
    "trail": "the trail of the handoff",
    "signoffs": "the list of what waits for a signature",
    "signoff": "the page of the run's request for a signature",
    "api_run": "the run as the REST API gives it to its starter",
    "api_handoff": "the handoff as the REST API gives it",
}


@dataclass(frozen=True, kw_only=True)
class Named:
    """Which entries an audit word stands for. `target` the state moved to, `command` the verb of a command."""

    names: tuple[str, ...] = ()
    machine: str = ""
    target: str = ""
    command: str = ""
    refused: bool = False
    after: Mapping[str, str] | None = None


def _moved(name: str, target: str = "", **after: str) -> Named:
    return Named(names=(name,), target=target, after=after or None)


ENTRIES: Mapping[str, Named] = {
    "workflow.started": _moved("run.started"),
    "workflow.recovering": _moved("run.recovering"),
    "workflow.completed": _moved("run.completed"),
    "workflow.compensated": _moved("run.compensated"),
    "workflow.failed_clean": _moved("run.failed_clean"),
    "workflow.closed_accepted": _moved("run.closed_accepted"),
    "workflow.closed": Named(
        names=("run.completed", "run.compensated", "run.failed_clean", "run.closed_accepted")
    ),
    "action.prepared": _moved("tool.execution.prepared"),
    "action.sent": _moved("tool.execution.started"),
    "action.accepted_for_later": _moved("tool.execution.accepted"),
    "action.confirmed": Named(
        names=("tool.execution.succeeded", "tool.execution.resolved"), machine="action", target="confirmed"
    ),
    "action.rejected": Named(
        names=("tool.execution.failed", "tool.execution.resolved"), machine="action", target="rejected"
    ),
    "action.partial": Named(
        names=("tool.execution.partial", "tool.execution.resolved"), machine="action", target="partial"
    ),
    "action.outcome_unknown": _moved("tool.execution.unknown"),
    "action.retry_scheduled": _moved("tool.retry.scheduled"),
    "action.skipped": _moved("tool.execution.skipped"),
    "action.accepted": _moved("tool.execution.accepted_by_person"),
    "action.superseded": _moved("tool.execution.superseded"),
    "action.compensated": _moved("tool.execution.compensated"),
    "item.confirmed": Named(
        names=("tool.execution.succeeded", "tool.execution.resolved"), machine="action", target="confirmed"
    ),
    "attempt.worker_lost": Named(names=("tool.execution.unknown",), machine="action", target="unknown"),
    "attempt.finished": Named(
        names=(
            *("tool.execution.succeeded", "tool.execution.failed", "tool.execution.unknown"),
            *("tool.execution.partial", "tool.retry.scheduled"),
        ),
        machine="action",
    ),
    "late_result.recorded": _moved("tool.execution.late_answer"),
    "tool.status_query.answered": Named(
        names=("tool.execution.queried", "tool.compensation.queried", "tool.execution.resolved")
    ),
    "callback.received": _moved("tool.callback.received"),
    "compensation.registered": _moved("tool.compensation.registered"),
    "compensation.started": _moved("tool.compensation.started"),
    "compensation.began": _moved("run.turned_back"),
    "compensation.confirmed": _moved("tool.compensation.succeeded"),
    "compensation.failed": _moved("tool.compensation.failed"),
    "compensation.outcome_unknown": _moved("tool.compensation.unknown"),
    "compensation.voided": _moved("tool.compensation.voided"),
    "compensation.skipped": _moved("tool.compensation.skipped"),
    "compensation.retry_scheduled": _moved("tool.compensation.retry.scheduled"),
    "handoff.opened": _moved("human.handoff.started"),
    "handoff.closed": _moved("human.handoff.resolved"),
    "handoff.claimed": _moved("human.handoff.claimed"),
    "handoff.released": _moved("human.handoff.released"),
    "handoff.escalated": _moved("human.handoff.escalated"),
    "handoff.reminded": _moved("human.handoff.reminded"),
    "handoff.accepted": _moved("human.handoff.accepted"),
    "approval.requested": _moved("approval.requested"),
    "approval.granted": _moved("approval.settled", "granted"),
    "approval.rejected": _moved("approval.settled", "rejected"),
    "approval.expired": Named(names=("approval.settled", "approval.lapsed"), target="expired"),
    "approval.voided": Named(names=("approval.settled", "approval.lapsed"), target="withdrawn"),
    "approval.consumed": _moved("approval.consumed"),
    "definition.published": _moved("definition.published"),
    "contract.published": _moved("contract.published"),
    "roles.changed": Named(names=("role.given", "role.taken")),
    "person.switched_off": _moved("person.switched_off"),
    "freeze.set": _moved("system.frozen"),
    "freeze.lifted": _moved("system.unfrozen"),
    "bulk.released": _moved("bulk.released"),
    "bulk.stopped": _moved("bulk.stopped"),
    "bulk.finished": _moved("bulk.finished"),
}
"""Neutral word of an audit action or event -> the product's entries. `COMMAND.accepted` and `COMMAND.refused` are
added for every command."""

COMMAND_ENTRIES: Mapping[str, Named] = {
    **{f"{verb}.accepted": Named(command=verb) for verb in COMMANDS},
    **{f"{verb}.refused": Named(command=verb, refused=True) for verb in COMMANDS},
}


def named(word: str) -> Named:
    """What an audit word stands for. Raises `KeyError`."""
    return ENTRIES.get(word) or COMMAND_ENTRIES[word]


VERBS: Mapping[str, str] = {"approve": "sign", "reject": "reject"}
"""Commands of a drill that the product calls otherwise."""
