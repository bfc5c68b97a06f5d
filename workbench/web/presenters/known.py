"""What is true of a case, with source and time: facts first, what is not known last, as questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState
from workbench.web.presenters import items, steps, text
from workbench.web.presenters.clock import Clock

IDLE = frozenset({ActionState.NOT_STARTED, ActionState.PREPARED, ActionState.SKIPPED})
UNPROVEN = frozenset({CompensationState.UNKNOWN, CompensationState.FAILED})


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is known, or asked: `question` facts come last, in bold."""

    icon: str
    says: SafeString
    more: SafeString | None
    source: SafeString
    question: bool = False


def is_unknown(action: ActionFacts) -> bool:
    """Whether nobody knows yet what became of the step, of a part of it or of its compensation."""
    made_up = action.compensation
    return (
        action.state is ActionState.UNKNOWN
        or (made_up is not None and made_up.state is CompensationState.UNKNOWN)
        or any(is_unknown(item) for item in action.items)
    )


def known(facts: RunFacts, clock: Clock) -> tuple[Fact, ...]:
    """What is true now with source and time; what is not known comes last, as questions."""
    again = steps.repeated(facts)
    found = [
        _of_which(fact, action) if fact.question and action.tool in again else fact
        for action in steps.told(facts)
        for fact in of_step(action, clock)
    ]
    return tuple(sorted(_folded(found), key=lambda fact: fact.question))


def _folded(found: list[Fact]) -> Iterator[Fact]:
    """What is true of several steps in the same words, once, with how often."""
    for __, same in groupby(found, key=lambda fact: (fact.icon, fact.says, fact.more, fact.source)):
        first, *more = same
        if not more or first.question:
            yield from (first, *more)
        else:
            n = len(more) + 1
            says = ngettext("{says} ({n} step)", "{says} ({n} steps)", n)
            yield replace(first, says=text.say(says, says=first.says, n=n))


def _of_which(fact: Fact, action: ActionFacts) -> Fact:
    """A question that several steps could ask, with the name of the one that does."""
    return replace(fact, source=text.say("{step} · {source}", step=action.step, source=fact.source))


def of_step(action: ActionFacts, clock: Clock) -> Iterator[Fact]:
    """What is true of one step; what is not known comes last."""
    state, title = action.state, action.contract.texts.title
    made_up = action.compensation
    if state is ActionState.UNKNOWN:
        question = _("Not known: {question}")
        says = text.say(question, question=action.contract.texts.question)
        yield Fact(icon="unk", says=says, more=_silence(action), source=_source(action, clock), question=True)
    elif state is ActionState.REJECTED:
        more = text.inert(f"{steps.error_words(action.error_class)}: {action.error_detail}".strip(": "), 300)
        says = text.say(_("{title}: refused, nothing happened"), title=title)
        yield Fact(icon="bad", says=says, more=more, source=_source(action, clock))
    elif state in IDLE:
        yield Fact(
            icon="wait", says=text.say(_("{title}: never sent"), title=title), more=None, source=_record()
        )
    elif state is ActionState.COMPENSATED:
        says = text.say(_("Compensated: {done}"), done=steps.said(action))
        yield Fact(icon="compensated", says=says, more=None, source=_source(action, clock))
    elif action.items and state is not ActionState.CONFIRMED:
        yield from _facts_of_items(action, clock)
    elif state is ActionState.SENT:
        yield Fact(
            icon="sent",
            says=text.say(_("{title}: sent, no answer yet"), title=title),
            more=None,
            source=_source(action, clock),
        )
    else:
        look = steps.look_of(action)
        icon = "ok" if made_up and made_up.state in UNPROVEN else look.icon
        yield Fact(icon=icon, says=steps.said(action), more=None, source=_source(action, clock))
    if made_up and made_up.state in UNPROVEN:
        yield _unproven(action, clock)


def _facts_of_items(action: ActionFacts, clock: Clock) -> Iterator[Fact]:
    """A call over many in numbers; what is not known of its parts is a question, as for any other step."""
    says = text.say(
        _("{title}: {done} of {n} items confirmed"),
        title=action.contract.texts.title,
        done=items.confirmed(action),
        n=len(action.items),
    )
    look = steps.look_of(action)
    yield Fact(icon=look.icon, says=says, more=items.tally_of_rest(action), source=_source(action, clock))
    open_ = [item for item in action.items if is_unknown(item)]
    if open_:
        question = text.say(_("Not known: {question}"), question=action.contract.texts.question)
        more = ngettext("{n} item got no answer.", "{n} items got no answer.", len(open_)).format(
            n=len(open_)
        )
        source = _source(action, clock)
        yield Fact(icon="unk", says=question, more=text.say(more), source=source, question=True)


def _unproven(action: ActionFacts, clock: Clock) -> Fact:
    made_up = action.compensation
    if made_up is None:
        raise ValueError(action.step)
    unknown = made_up.state is CompensationState.UNKNOWN
    if unknown:
        says = text.say(_("Not known: was “{title}” made up for?"), title=action.contract.texts.title)
    else:
        says = text.say(
            _("“{title}” is still in effect: its compensation failed"), title=action.contract.texts.title
        )
    detail = f"{made_up.tool} · {steps.error_words(made_up.error_class)} {made_up.error_detail}".strip(" ·")
    source = text.inert(
        " · ".join(
            part
            for part in (
                made_up.contract.system,
                made_up.provider_ref,
                clock.time(made_up.settled_at or made_up.sent_at),
            )
            if part
        )
    )
    return Fact(
        icon="unk" if unknown else "compfailed",
        says=says,
        more=text.inert(detail, 300),
        source=source,
        question=unknown,
    )


def _silence(action: ActionFacts) -> SafeString:
    system = action.contract.system
    if action.queries:
        return text.say(
            ngettext(
                "{system} did not answer the call, nor {n} status query.",
                "{system} did not answer the call, nor {n} status queries.",
                action.queries,
            ),
            system=system,
            n=action.queries,
        )
    return text.say(_("{system} did not answer."), system=system)


def _source(action: ActionFacts, clock: Clock) -> SafeString:
    """Which system said so, under which reference, when it was last read."""
    read = action.evidence[-1].at if action.evidence else action.settled_at or action.sent_at
    middle = action.provider_ref or (_("no answer") if action.state is ActionState.UNKNOWN else "")
    return text.inert(
        " · ".join(part for part in (action.contract.system, middle, clock.time(read)) if part), 200
    )


def _record() -> SafeString:
    return text.say(_("our own record"))
