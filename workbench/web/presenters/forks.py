"""What each answer to a call would lead to, in words: the branches of a preview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Fork:
    """What one answer leads to."""

    icon: str
    when: Words
    then: Words


_FORKS: Mapping[str, str] = {
    "found": "ok",
    "confirmed": "ok",
    "happened": "ok",
    "not_found": "bad",
    "absent": "bad",
    "denied": "bad",
    "rejected": "bad",
    "no_answer": "unk",
    "unknown": "unk",
    "compensated": "compensated",
    "failed": "compfailed",
    "left_out": "skip",
    "all_picked": "kept",
}


def fork(when: str, then: str) -> Fork:
    """A branch of the preview out of the engine's codes."""
    return Fork(icon=_FORKS.get(when, "dot"), when=fork_when(when), then=fork_then(then))


def fork_when(code: str) -> str:
    """An answer in words."""
    known = {
        "found": _("Found"),
        "not_found": _("Not found"),
        "absent": _("Not found"),
        "denied": _("Not carried out"),
        "no_answer": _("No answer"),
        "confirmed": _("Confirmed"),
        "rejected": _("Refused"),
        "unknown": _("No answer"),
        "compensated": _("Confirmed"),
        "failed": _("Refused"),
        "left_out": _("Left out"),
        "read_back": _("Read back"),
        "precondition_false": _("Precondition not met"),
        "nothing_left": _("Nothing is left to do"),
        "conditions_hold": _("The conditions hold"),
        "all_picked": _("No item is left open"),
        "some_left": _("Some are left open"),
        "condition_fails": _("A condition does not hold"),
    }
    return known.get(code, code.replace("_", " "))


def fork_then(code: str) -> str:
    """What an answer leads to, in words."""
    known = {
        "confirmed": _("The step becomes Confirmed; the run goes on by its rules."),
        "rejected": _("The step becomes Rejected; retry may be switched on."),
        "unknown": _("The step stays Unknown. Nothing is assumed, the system asks again."),
        "stays_unknown": _("The step stays Unknown. Nothing is assumed, the system asks again."),
        "retry": _("Retry is switched on."),
        "compensated": _("The step becomes Compensated once that is read back."),
        "compensation_failed": _("The compensation stops here, the rest waits, and you are told."),
        "compensation_unknown": _("The compensation stays Unknown and is asked about."),
        "accepted": _("The case closes as Accepted."),
        "handoff": _("The case stays with people."),
        "effect_stays": _("The effect stays and counts as left; the case can only close as Accepted."),
        "next_compensation": _("The next compensation follows."),
        "stops_comes_back": _("It stops there and the case comes back."),
        "becomes_unknown": _("It is Unknown and asked about; nothing goes on before that is settled."),
        "goes_on": _("The run goes on by its rules."),
        "comes_back": _("The case comes back with the refusal."),
        "goes_on_accepted": _("The run goes on by its rules; in the end it closes as Accepted."),
        "stays_smaller": _("The case stays, with the items that are left."),
        "closes": _("The case closes."),
        "stays_open": _("Nothing is closed."),
    }
    return known.get(code, code.replace("_", " "))
