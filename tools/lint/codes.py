"""The codes of the lint: what each means, how grave it is, whether it can be waived, and what to do about it.

A table and nothing else. A code never changes its meaning or its severity; docs/lint.md is made from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Whether a finding keeps a definition from being published."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Code:
    """One rule. `harm` says what could happen to a customer or to the books, `fix` what to do in general."""

    code: str
    title: str
    severity: Severity
    waivable: bool
    harm: str
    fix: str


def _broken(code: str, title: str, harm: str, fix: str) -> Code:
    """An error that no reason makes good: the definition could not be carried out as written."""
    return Code(code=code, title=title, severity=Severity.ERROR, waivable=False, harm=harm, fix=fix)


def _unsafe(code: str, title: str, harm: str, fix: str) -> Code:
    """An error that somebody may answer for, by name and with a reason."""
    return Code(code=code, title=title, severity=Severity.ERROR, waivable=True, harm=harm, fix=fix)


def _doubtful(code: str, title: str, harm: str, fix: str) -> Code:
    return Code(code=code, title=title, severity=Severity.WARNING, waivable=False, harm=harm, fix=fix)


UNKNOWN_TOOL = _broken(
    "W001",
    "Unknown tool",
    "The run would stop where the tool is needed, with earlier effects in the world.",
    "Publish its contract first, or correct the name.",
)
UNKNOWN_VERSION = _broken(
    "W002",
    "Unknown version of a contract",
    "The step would run under rules that nobody has checked it against.",
    "Name a published version.",
)
UNKNOWN_SOURCE = _broken(
    "W003",
    "Value from a source that there is not",
    "The step could never be called.",
    "Use input, run, key or steps.ID.result, .args, .prior.",
)
UNKNOWN_STEP = _broken(
    "W004",
    "Step that there is not",
    "A value or an end state would hang on a step that never runs.",
    "Correct the step's id.",
)
LATER_STEP = _broken(
    "W005",
    "Value of a step that has not run yet",
    "The step could never be called.",
    "Bind to an earlier step outside the group, or change the order.",
)
NOTHING_THERE = _broken(
    "W006",
    "Pointer to where nothing is",
    "A value, or the proof of an outcome, would be missing when it is needed.",
    "Correct the pointer, declare the property, or give a default.",
)
UNKNOWN_ARGUMENT = _broken(
    "W007",
    "Argument that the tool does not have",
    "The tool would refuse the call, or leave out what was meant.",
    "Correct the name.",
)
MISSING_ARGUMENT = _broken(
    "W008", "Argument left out", "The tool would refuse the call.", "Add the argument."
)
BAD_ARGUMENT = _broken(
    "W009",
    "Argument of the wrong form",
    "The tool would refuse the call.",
    "Write a value that fits the contract.",
)
NOT_A_READ = _broken(
    "W010",
    "Looking by a tool that writes",
    "Asking what happened would make something happen.",
    "Name a read-only tool.",
)
COMPENSATION_READS = _broken(
    "W011",
    "Compensation that only reads",
    "The run would be called compensated while its effect stands.",
    "Name a tool that has an effect.",
)

IN_THE_MIDDLE = _unsafe(
    "W101",
    "Irreversible step outside the last third",
    "A customer is told, or money leaves, and then a later step fails: what was sent cannot be taken back.",
    "Move it to the end, or stage it: held = true holds it until everything else has succeeded.",
)
NO_REMEDY = _unsafe(
    "W102",
    "No compensation for a step that may have to be made up for",
    "A later failure compensates the run around this effect and leaves it standing.",
    "Declare a compensation, or send later failures to a person with on_rejected = handoff.",
)
NOT_IDEMPOTENT = _unsafe(
    "W103",
    "Compensation that may take effect twice",
    "A repeat after a lost answer refunds twice, or releases what somebody else holds by now.",
    "Have the tool honour a key, say how it shows that it is done (already_done), or declare "
    "idempotency.natural where the same call again changes nothing.",
)
CANNOT_BE_ASKED = _unsafe(
    "W104",
    "No status query for an irreversible tool",
    "After a lost answer nobody can say whether the customer was told; a repeat might tell them twice.",
    "Declare a status_query, if the system has any way to ask.",
)
UNBINDABLE = _broken(
    "W105",
    "Compensation that cannot be put on record before the call",
    "When the run fails, nobody can call the compensation: its arguments are known nowhere.",
    "Take the arguments from args, result or a declared prior_state.",
)
BLANKET_RETRY = _broken(
    "W106",
    "One retry rule for every failure",
    "What was refused is hammered, and what may have happened is done again.",
    "Give each error class its own rule: how long each is worth repeating differs.",
)
IN_A_GROUP = _unsafe(
    "W107",
    "Irreversible step beside a step that may turn the run back",
    "One step of the group fails while the other is out already: what was sent cannot be taken back.",
    "Take it out of the group and put it behind, or send failures of the others to a person.",
)

WRITE_AFTER = _doubtful(
    "W201",
    "Irreversible step followed by a write",
    "The customer is told, and then the rest fails: the message is true no longer.",
    "Put it last, or stage it with held = true.",
)
PERSON_DECIDES = _doubtful(
    "W202",
    "No compensation; a person decides",
    "If the run has to be given up after this step, its effect stays until somebody deals with it.",
    "Declare a compensation, if there is one.",
)
SHARED_COMPENSATION = _doubtful(
    "W203",
    "One compensation tool for unlike steps",
    "The wrong thing is called off: the run looks compensated while the effect stands.",
    "Name for each step the tool that makes up for that very step.",
)
FEW_RECOVERABLE = _doubtful(
    "W204",
    "Fewer than 80 % of the steps can be compensated or safely repeated",
    "A failure in the middle is more likely to end with a person.",
    "Add compensations, or have tools honour a key.",
)
UNCONFIRMED = _doubtful(
    "W205",
    "External effect that nobody confirms",
    "An agent's mistake reaches a customer without anybody having looked.",
    "Set require_confirmation = true, or limit by policy who may start the workflow.",
)
NOT_AUTOMATIC = _doubtful(
    "W206",
    "Not for automatic use",
    "Nobody has thought through what happens when a call fails half way.",
    "Answer the open questions in the contract; three or more open ones are too many.",
)
NO_END_STATES = _doubtful(
    "W207",
    "No acceptable end state",
    "Each case has to be judged by a person, every time anew.",
    "Add end_states with conditions.",
)
CANNOT_SETTLE = _doubtful(
    "W208",
    "Outcome that cannot be settled",
    "Every lost answer goes to a person.",
    "Declare a status_query, or have the tool honour a key.",
)
NOT_READ_BACK = _doubtful(
    "W209",
    "Compensation that nothing reads back",
    "A compensation that was accepted but not carried out goes unnoticed.",
    "Add compensation.verify.",
)
MAY_BE_UNBINDABLE = _doubtful(
    "W210",
    "Compensation known only from an answer that may be missing",
    "After a lost or short answer the compensation's arguments are known nowhere: a person has to find them.",
    "Have the status query's answer or the arguments carry what the compensation needs.",
)

CODES = {
    one.code: one
    for one in (
        *(UNKNOWN_TOOL, UNKNOWN_VERSION, UNKNOWN_SOURCE, UNKNOWN_STEP, LATER_STEP, NOTHING_THERE),
        *(UNKNOWN_ARGUMENT, MISSING_ARGUMENT, BAD_ARGUMENT, NOT_A_READ, COMPENSATION_READS),
        *(IN_THE_MIDDLE, NO_REMEDY, NOT_IDEMPOTENT, CANNOT_BE_ASKED, UNBINDABLE, BLANKET_RETRY),
        IN_A_GROUP,
        *(WRITE_AFTER, PERSON_DECIDES, SHARED_COMPENSATION, FEW_RECOVERABLE, UNCONFIRMED, NOT_AUTOMATIC),
        *(NO_END_STATES, CANNOT_SETTLE, NOT_READ_BACK, MAY_BE_UNBINDABLE),
    )
}
"""Every code, in the order of its number."""
