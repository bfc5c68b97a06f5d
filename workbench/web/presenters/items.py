"""The parts of a call over many, or of a loop: the ones that are not settled by name, the others by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas import api
from sagas.facts import ActionFacts, RunFacts
from sagas.states import ActionState, CompensationState
from tools.contract import Json
from workbench.web.presenters import steps, text
from workbench.web.presenters.words import StateWord, Words

MOST = 100
# What passes by itself: the same call may be taken the next time. Everything else was said about this very part.
_PASSING = frozenset({"temporary", "throttled", "not_sent", "no_answer", "server", "garbage", "in_flight"})
_SETTLED = frozenset({"ok", "compensated", "kept", "skip"})
_WORST_FIRST = ("compfailed", "unk", "bad", "held", "compensating", "sent")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One part that needs a look."""

    name: SafeString
    state: StateWord
    why: SafeString
    can: Words
    key: str


@dataclass(frozen=True, kw_only=True)
class Items:
    """The parts of one step. `listed` are those not settled; `others` and `more` name the rest by number."""

    step: str
    tool: str
    summary: str
    listed: tuple[Item, ...]
    others: str
    more: str


def batches(facts: RunFacts) -> tuple[Items, ...]:
    """Every step of a run that has parts."""
    return tuple(_items(action, facts) for action in steps.current(facts) if action.items)


def names(action: ActionFacts, facts: RunFacts) -> Mapping[str, str]:
    """What each part is called: its own name, or the element that a loop makes a call for."""
    if action.contract.items is not None:
        return {item.item: item.item for item in action.items}
    elements = api.elements(facts, action)
    return {item.item: _called(item.item, elements) for item in action.items}


def _called(number: str, elements: Sequence[Json]) -> str:
    index = int(number) - 1 if number.isdecimal() else -1
    if not 0 <= index < len(elements):
        return number
    scalars = [value for __, value in steps.flat(elements[index])]
    return scalars[0] if scalars else number


def refused(facts: RunFacts, step: str) -> list[tuple[str, Words]]:
    """The parts of a step that can go out again, for a person to pick from."""
    return _to_pick(facts, step, lambda item: item.state is ActionState.REJECTED)


def safe_to_retry(facts: RunFacts, step: str) -> list[str]:
    """The parts of a step that were refused for a reason that passes, by their ids."""
    action = next((action for action in steps.current(facts) if action.step == step), None)
    return [item.item for item in action.items if _passes(item)] if action is not None else []


def _passes(item: ActionFacts) -> bool:
    return item.state is ActionState.REJECTED and item.error_class in _PASSING


def not_made_up_for(facts: RunFacts, step: str) -> list[tuple[str, Words]]:
    """The parts of a step whose compensation failed, for a person to pick from."""

    def failed(item: ActionFacts) -> bool:
        return item.compensation is not None and item.compensation.state is CompensationState.FAILED

    return _to_pick(facts, step, failed)


def _to_pick(facts: RunFacts, step: str, meant: Callable[[ActionFacts], bool]) -> list[tuple[str, Words]]:
    action = next((action for action in steps.current(facts) if action.step == step), None)
    if action is None:
        return []
    called = names(action, facts)
    return [
        (item.item, text.say("{name} · {why}", name=called[item.item], why=_why(item)))
        for item in action.items
        if meant(item)
    ]


def tally(action: ActionFacts) -> str:
    """How many parts are in which state: "193 confirmed, 7 rejected"."""
    return _listed(steps.look_of(item).word for item in action.items)


def tally_of_rest(action: ActionFacts) -> SafeString | None:
    """The parts that did not take effect, in numbers; None where all of them did."""
    rest = [steps.look_of(item).word for item in action.items if item.state is not ActionState.CONFIRMED]
    return text.inert(_listed(rest), 300) if rest else None


def confirmed(action: ActionFacts) -> int:
    """How many parts took effect and stand."""
    return sum(item.state is ActionState.CONFIRMED for item in action.items)


def _items(action: ActionFacts, facts: RunFacts) -> Items:
    called = names(action, facts)
    looks = [(item, steps.look_of(item)) for item in action.items]
    open_ = [(item, look) for item, look in looks if look.icon not in _SETTLED or item.let_be]
    open_.sort(key=lambda one: _WORST_FIRST.index(one[1].icon) if one[1].icon in _WORST_FIRST else 9)
    settled = [look.word for item, look in looks if look.icon in _SETTLED and not item.let_be]
    hidden = len(open_) - MOST
    return Items(
        step=action.step,
        tool=action.tool,
        summary=ngettext("{listed} of {n} item", "{listed} of {n} items", len(looks)).format(
            listed=tally(action), n=len(looks)
        ),
        listed=tuple(
            Item(
                name=text.inert(called[item.item], 80),
                state=look,
                why=_why(item),
                can=_can(item),
                key=item.key,
            )
            for item, look in open_[:MOST]
        ),
        others=_others(settled) if open_ else "",
        more=ngettext("{n} more is not shown here.", "{n} more are not shown here.", hidden).format(n=hidden)
        if hidden > 0
        else "",
    )


def _can(item: ActionFacts) -> Words:
    if item.state is not ActionState.REJECTED:
        return ""
    return _("Safe to retry") if _passes(item) else _("Needs a decision")


def _others(settled: list[Words]) -> str:
    if not settled:
        return ""
    return ngettext(
        "The other item is settled ({listed}) and is not touched by a retry.",
        "The other {n} items are settled ({listed}) and are not touched by a retry.",
        len(settled),
    ).format(n=len(settled), listed=_listed(settled))


def _listed(found: Iterable[Words]) -> str:
    sums = Counter(str(word).lower() for word in found)
    return _(", ").join(_("{n} {word}").format(n=number, word=word) for word, number in sums.most_common())


def _why(item: ActionFacts) -> SafeString:
    made_up = item.compensation
    if made_up is not None and made_up.state in ("failed", "unknown"):
        return _said(made_up.error_class, made_up.error_detail)
    match item.state:
        case ActionState.NOT_STARTED | ActionState.PREPARED:
            return text.say(_("never sent"))
        case ActionState.SENT:
            return text.say(_("no answer yet"))
        case ActionState.UNKNOWN | ActionState.REJECTED:
            return _said(item.error_class or "no_answer", item.error_detail)
        case ActionState.ACCEPTED if item.let_be:
            was = _said(item.error_class or "refused", item.error_detail)
            return text.say(_("accepted by {who}; {was}"), who=item.settled_by, was=was)
        case _:
            return text.say(_("being made up for")) if made_up is not None else text.say("")


def _said(error_class: str, detail: str) -> SafeString:
    words = steps.error_words(error_class)
    return text.inert(": ".join(part for part in (words, detail) if part), 160)
