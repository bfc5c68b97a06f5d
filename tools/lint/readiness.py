"""The ten questions that a tool has to answer before agents may use it by themselves (S1-24).

Answers are read off the contract; what only a trial can show is told by the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tools import bindings
from tools.contract import Contract, KeySupport, RecoveryClass, Who

TOO_MANY_OPEN = 3


class Mark(StrEnum):
    """How good an answer is. Weak ones count as answers."""

    ANSWERED = "answered"
    WEAK = "weak"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One of the ten questions, and what the contract says to it. `number` counts from 1.

    `template` is a sentence of ours with named `parts`, so that it can be said in another language too.
    """

    number: int
    question: str
    mark: Mark
    template: str
    parts: Mapping[str, str]

    @property
    def text(self) -> str:
        """The answer in English."""
        return self.template.format(**self.parts)


type _Said = tuple[Mark, str] | tuple[Mark, str, Mapping[str, str]]


def readiness(contract: Contract, *, tried: Collection[str] = ()) -> tuple[Answer, ...]:
    """The ten answers in order. `tried` names the tools whose half-failure has been tried out."""
    said = (
        ("What kind of effect does it have?", _kind(contract)),
        ("Which key keeps a repeat from taking effect twice?", _key(contract)),
        ("How is the outcome confirmed after a time-out?", _confirmation(contract)),
        ("Is the state before it kept?", _prior(contract)),
        ("Can it be restored, or else made up for?", _compensation(contract)),
        ("What happens when the compensation fails?", _failed_compensation(contract)),
        ("In which states is a person needed?", _person(contract)),
        ("Are partial and unknown outcomes told apart?", _outcomes(contract)),
        ("Does the trail explain why and what?", _trail(contract)),
        ("Has a half-failure been tried out?", _tried(contract, tried)),
    )
    return tuple(
        Answer(number=number, question=question, mark=mark, template=template, parts=dict(*parts))
        for number, (question, (mark, template, *parts)) in enumerate(said, 1)
    )


def open_questions(contract: Contract, *, tried: Collection[str] = ()) -> tuple[Answer, ...]:
    """The questions that the contract leaves open."""
    return tuple(answer for answer in readiness(contract, tried=tried) if answer.mark is Mark.OPEN)


def _kind(contract: Contract) -> _Said:
    return (
        Mark.ANSWERED,
        "{kind}, {recovery}",
        {"kind": contract.effect_kind.value, "recovery": contract.recovery_class.value},
    )


def _key(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "none is needed: it only reads"
    if contract.idempotency.support is KeySupport.HONOURED:
        return Mark.ANSWERED, "the tool honours our key"
    if contract.idempotency.natural:
        return Mark.ANSWERED, "none is needed: the same call again changes nothing"
    if contract.status_query is not None:
        return Mark.WEAK, "none; it is asked before it is repeated"
    return Mark.OPEN, "none: every repeat may take effect again"


def _confirmation(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "it is simply read again"
    if contract.status_query is not None:
        return Mark.ANSWERED, "by asking {tool}", {"tool": contract.status_query.tool}
    if contract.idempotency.support is KeySupport.HONOURED or contract.idempotency.natural:
        return Mark.WEAK, "only by repeating the call"
    if contract.callback is not None:
        return Mark.WEAK, "only by the tool's own call back"
    return Mark.OPEN, "not at all: a person has to find out"


def _prior(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "nothing is changed"
    if contract.prior_state is not None:
        return Mark.ANSWERED, "read by {tool} before the call", {"tool": contract.prior_state.tool}
    if contract.recovery_class is RecoveryClass.IRREVERSIBLE:
        return Mark.ANSWERED, "nothing could be restored from it"
    if contract.compensation is not None and "prior" not in bindings.sources(contract.compensation.args):
        return Mark.WEAK, "no; the compensation does without it"
    if _goes_forward(contract):
        return Mark.WEAK, "no; it is repeated, not restored"
    return Mark.OPEN, "no"


def _compensation(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "there is nothing to make up for"
    if contract.compensation is not None:
        made_up = contract.compensation
        return Mark.ANSWERED, "{tool} {kind}", {"tool": made_up.tool, "kind": made_up.kind.value}
    if contract.recovery_class is RecoveryClass.IRREVERSIBLE:
        return Mark.WEAK, "no; it goes to {team}", {"team": contract.escalation.to}
    if _goes_forward(contract):
        return Mark.WEAK, "no; it is repeated until it works"
    return Mark.OPEN, "not said"


def _goes_forward(contract: Contract) -> bool:
    """Whether a repeat is the remedy: retryable, and the same call again takes effect once."""
    safe = contract.idempotency.support is KeySupport.HONOURED or contract.idempotency.natural
    return contract.recovery_class is RecoveryClass.RETRYABLE and safe


def _failed_compensation(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "there is none"
    if contract.escalation.to:
        return Mark.ANSWERED, "it goes to {team}", {"team": contract.escalation.to}
    if contract.compensation is not None and contract.compensation.verify is not None:
        return Mark.WEAK, "it is noticed by a read and goes to the workflow's team"
    if contract.compensation is None and _goes_forward(contract):
        return Mark.WEAK, "there is none that could fail"
    return Mark.OPEN, "nobody is named, and nothing reads back whether it worked"


def _person(contract: Contract) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "in none"
    if contract.escalation.when:
        return Mark.ANSWERED, "{when}", {"when": contract.escalation.when}
    if contract.compensation is None:
        if _goes_forward(contract) and contract.retry:
            return Mark.WEAK, "when its tries are used up"
        return Mark.OPEN, "not said"
    if "who" not in contract.document["compensation"]:
        return Mark.WEAK, "not said; compensated automatically"
    told = {
        Who.AUTOMATIC: "when its automatic compensation fails",
        Who.APPROVAL: "before it is compensated: an approver signs",
        Who.HUMAN: "whenever it is to be compensated",
    }
    return Mark.ANSWERED, told[contract.compensation.who]


def _outcomes(contract: Contract) -> _Said:
    if contract.result_schema is None:
        return Mark.OPEN, "a success is not described, so nothing can be told from it"
    if contract.errors.schema is not None or contract.statuses or contract.errors.codes:
        return Mark.ANSWERED, "successes and failures are described"
    return Mark.WEAK, "only a success is described"


def _trail(contract: Contract) -> _Said:
    if contract.texts.effect or not contract.has_effect:
        return Mark.ANSWERED, "the contract has a sentence for each state"
    return Mark.OPEN, "the contract does not say in words what the effect is"


def _tried(contract: Contract, tried: Collection[str]) -> _Said:
    if not contract.has_effect:
        return Mark.ANSWERED, "there is no half of a read"
    if contract.tool in tried:
        return Mark.ANSWERED, "a drill has shown it"
    return Mark.OPEN, "no drill is on record"
