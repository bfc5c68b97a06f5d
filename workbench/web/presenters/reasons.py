"""Why a case needs a person: a short sentence for the queue, a longer one for the case, and the rule's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from tools.contract import Json
from workbench.web.presenters import text
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class ReasonWords:
    """`short` and `long` may name {tool} and {cause}; `pill` is the state of the case in three words."""

    pill: Words
    icon: str
    short: Words
    long: Words
    rule: Words

    @property
    def tone(self) -> str:
        """The colour of the pill; unknown is never the colour of a failure."""
        return {"unk": "unk", "compfailed": "bad"}.get(self.icon, "")


REASONS: dict[str, ReasonWords] = {
    "unknown_unresolved": ReasonWords(
        pill=_("Outcome unknown"),
        icon="unk",
        short=_("{tool} got no answer and asking did not settle it: did it take effect?"),
        long=_(
            "{tool} got no answer, and asking did not settle it. Sending it again could make the "
            "effect happen twice."
        ),
        rule=_("outcome unknown, status query without a result"),
    ),
    "unknown_without_query": ReasonWords(
        pill=_("Outcome unknown"),
        icon="unk",
        short=_("{tool} got no answer and cannot be asked: did it take effect?"),
        long=_(
            "{tool} got no answer and offers no status query, so only a person can find out whether "
            "it took effect."
        ),
        rule=_("outcome unknown, no status query"),
    ),
    "rejected": ReasonWords(
        pill=_("Partly done"),
        icon="held",
        short=_("{tool} was refused. Retry, make up for the rest, or accept?"),
        long=_(
            "{tool} was refused with proof that nothing happened. Whether to retry, to make up for "
            "the steps before it, or to accept is a business call."
        ),
        rule=_("a step was refused, the workflow asks a person"),
    ),
    "partial": ReasonWords(
        pill=_("Partly done"),
        icon="held",
        short=_("{tool} was done in part. Finish it, make up for it, or accept?"),
        long=_(
            "{tool} was done in part. Whether to finish it, to make up for it or to accept it is a "
            "business call."
        ),
        rule=_("a step was done in part"),
    ),
    "effects_left": ReasonWords(
        pill=_("Effects left"),
        icon="held",
        short=_("Everything that could be compensated was; {tool} still has an effect."),
        long=_("What could be compensated was compensated, and {tool} still has an effect that stays."),
        rule=_("an effect stays after compensation"),
    ),
    "pivot": ReasonWords(
        pill=_("Past the point of no return"),
        icon="oneway",
        short=_("{tool} is done and irreversible, and {cause} was refused after it."),
        long=_(
            "{tool} has taken effect and cannot be taken back, and {cause} was refused after it. Going back "
            "by itself is not possible any more."
        ),
        rule=_("failure after an irreversible step"),
    ),
    "compensation_failed": ReasonWords(
        pill=_("Compensation failed"),
        icon="compfailed",
        short=_("Compensating {tool} did not work; its effect is still there."),
        long=_(
            "Both directions are incomplete. Compensating {tool} did not work, and no more "
            "compensations will run by themselves."
        ),
        rule=_("a compensation failed after all tries"),
    ),
    "compensation_unknown": ReasonWords(
        pill=_("Compensation unknown"),
        icon="unk",
        short=_("Compensating {tool} got no answer: is its effect still there?"),
        long=_(
            "Compensating {tool} got no answer, and asking did not settle it. Nobody knows whether "
            "its effect is still there."
        ),
        rule=_("outcome of a compensation unknown"),
    ),
    "compensation_unbindable": ReasonWords(
        pill=_("Cannot be compensated"),
        icon="held",
        short=_("The compensation of {tool} lacks a value it needs."),
        long=_(
            "The registered compensation of {tool} cannot be filled in: a value it needs was never received."
        ),
        rule=_("compensation cannot be filled in"),
    ),
    "no_compensation": ReasonWords(
        pill=_("Cannot be compensated"),
        icon="oneway",
        short=_("{tool} took effect and has no compensation."),
        long=_(
            "{tool} took effect and no compensation is registered for it, so what to do about it is a "
            "business call."
        ),
        rule=_("an effect without a compensation"),
    ),
    "tool_withdrawn": ReasonWords(
        pill=_("Tool withdrawn"),
        icon="held",
        short=_("{tool} is not available any more."),
        long=_("The contract of {tool} was withdrawn while this run needed it."),
        rule=_("tool withdrawn"),
    ),
    "signoff_needed": ReasonWords(
        pill=_("Needs a sign-off"),
        icon="held",
        short=_("{tool} may only go out after a sign-off."),
        long=_("The contract of {tool} asks for a second person before it may go out."),
        rule=_("the contract asks for a sign-off"),
    ),
    "approval_expired": ReasonWords(
        pill=_("Sign-off expired"),
        icon="held",
        short=_("Nobody signed {tool} in time. Nothing ran."),
        long=_("The sign-off for {tool} ran out before anybody gave it. Nothing ran."),
        rule=_("sign-off expired"),
    ),
    "late_fact": ReasonWords(
        pill=_("Late news"),
        icon="info",
        short=_("News about {tool} contradicts how this run was closed."),
        long=_("After this run was closed, news about {tool} arrived that contradicts how it was closed."),
        rule=_("a late fact contradicts a closed run"),
    ),
    "throttled": ReasonWords(
        pill=_("Waited too long"),
        icon="held",
        short=_("{tool} asks us to slow down: its call has waited too long for its turn."),
        long=_(
            "{tool} takes only so many calls, and this one has waited for its turn longer than its contract "
            "allows. Nothing was sent; letting the run go on gives it a new place in the queue."
        ),
        rule=_("a call waited too long for its turn"),
    ),
    "tool_paused": ReasonWords(
        pill=_("Tool paused"),
        icon="held",
        short=_("{tool} refuses our credential: it is paused until a person opens it."),
        long=_(
            "{tool} refused the credential that we call it with, so that every other call would be refused too. "
            "It is paused for all runs. Renew the credential, open the tool, then let this run go on."
        ),
        rule=_("a refused credential pauses the tool"),
    ),
    "quarantined": ReasonWords(
        pill=_("Quarantined"),
        icon="held",
        short=_("This run breaks whoever works on it and was set aside."),
        long=_(
            "This run broke the process that worked on it again and again, so it was set aside before it could "
            "hold up others. Letting it go on gives it new tries."
        ),
        rule=_("set aside after too many broken deliveries"),
    ),
    "escalated": ReasonWords(
        pill=_("Escalated"),
        icon="esc",
        short=_("A person asked for help with this run."),
        long=_("A person asked for somebody with more authority to look at this run."),
        rule=_("escalated by a person"),
    ),
    "reopened": ReasonWords(
        pill=_("Reopened"),
        icon="flag",
        short=_("A person reopened a case that was closed."),
        long=_("A person reopened a case that was closed; why is told below."),
        rule=_("reopened by a person"),
    ),
}
_OTHER = ReasonWords(
    pill=_("Needs a person"),
    icon="held",
    short=_("The system stopped at {tool} and does not go on by itself."),
    long=_("The system stopped at {tool} and does not go on by itself."),
    rule=_("no rule covers this"),
)


SETTLED = ReasonWords(
    pill=_("Settled, waits for you"),
    icon="held",
    short=_("What was unknown is settled now; the run waits for its owner."),
    long=_(
        "What was unknown is settled now. Somebody had claimed the case, so the run does not go "
        "on by itself: "
        "let it go on, or decide otherwise."
    ),
    rule=_("evidence arrived while a person worked on it"),
)
_ABOUT_UNKNOWN = ("unknown_unresolved", "unknown_without_query", "compensation_unknown")


def reason_words(code: str, *, settled: bool = False) -> ReasonWords:
    """The words of a handoff reason; `settled` when nothing is unknown any more that once was."""
    if settled and code in _ABOUT_UNKNOWN:
        return SETTLED
    return REASONS.get(code, _OTHER)


def short(code: str, params: Mapping[str, Json], tool: str, *, settled: bool = False) -> SafeString:
    """One line for the queue, the tool standing out."""
    return _filled(reason_words(code, settled=settled).short, params, tool)


def long(code: str, params: Mapping[str, Json], tool: str, *, settled: bool = False) -> SafeString:
    """The case page's sentence."""
    return _filled(reason_words(code, settled=settled).long, params, tool)


def _filled(template: Words, params: Mapping[str, Json], tool: str) -> SafeString:
    named = text.strong(params.get("tool") or tool or "…")
    return text.say(template, tool=named, cause=text.strong(params.get("cause") or "…"))
