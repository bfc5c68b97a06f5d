"""The ten questions to a tool and what a contract can say to them, for readers of every language.

The English is that of `tools.lint.readiness`, word for word (a test compares them): the tools know no languages.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from workbench.web.presenters.words import Words

QUESTIONS: tuple[Words, ...] = (
    _("What kind of effect does it have?"),
    _("Which key keeps a repeat from taking effect twice?"),
    _("How is the outcome confirmed after a time-out?"),
    _("Is the state before it kept?"),
    _("Can it be restored, or else made up for?"),
    _("What happens when the compensation fails?"),
    _("In which states is a person needed?"),
    _("Are partial and unknown outcomes told apart?"),
    _("Does the trail explain why and what?"),
    _("Has a half-failure been tried out?"),
)

ANSWERS: tuple[Words, ...] = (
    _("{kind}, {recovery}"),
    _("none is needed: it only reads"),
    _("the tool honours our key"),
    _("none is needed: the same call again changes nothing"),
    _("none; it is asked before it is repeated"),
    _("none: every repeat may take effect again"),
    _("it is simply read again"),
    _("by asking {tool}"),
    _("only by repeating the call"),
    _("only by the tool's own call back"),
    _("not at all: a person has to find out"),
    _("nothing is changed"),
    _("read by {tool} before the call"),
    _("nothing could be restored from it"),
    _("no; the compensation does without it"),
    _("no; it is repeated, not restored"),
    _("no"),
    _("there is nothing to make up for"),
    _("{tool} {kind}"),
    _("no; it goes to {team}"),
    _("no; it is repeated until it works"),
    _("not said"),
    _("there is none"),
    _("it goes to {team}"),
    _("it is noticed by a read and goes to the workflow's team"),
    _("there is none that could fail"),
    _("nobody is named, and nothing reads back whether it worked"),
    _("in none"),
    _("{when}"),
    _("when its tries are used up"),
    _("not said; compensated automatically"),
    _("when its automatic compensation fails"),
    _("before it is compensated: an approver signs"),
    _("whenever it is to be compensated"),
    _("a success is not described, so nothing can be told from it"),
    _("successes and failures are described"),
    _("only a success is described"),
    _("the contract has a sentence for each state"),
    _("the contract does not say in words what the effect is"),
    _("there is no half of a read"),
    _("a drill has shown it"),
    _("no drill is on record"),
)

EFFECT_KINDS: dict[str, Words] = {
    "read_only": _("only reads"),
    "reversible_write": _("a write that can be taken back"),
    "external_effect": _("an effect that reaches outside"),
}
