"""The Decide panel: every offer with its reason, the preview in five sections, the form of what is picked."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import EndStateCheck, PlannedCall
from tools.contract import Json
from workbench.commands import Offer, Preview
from workbench.web.forms import Field
from workbench.web.presenters import dry_run, text, verb_words
from workbench.web.presenters.checks import Check
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.forks import Fork, fork
from workbench.web.presenters.words import Words

IN_BAR = ("claim", "release")
READ_ONLY = "query_status"
ICONS = {
    "query_status": "eye",
    "retry": "retry",
    "edit_and_retry": "retry",
    "redo": "retry",
    "resolve_happened": "ok",
    "resolve_not_happened": "skip",
    "mark_acceptable": "accept",
    "accept_items": "accept",
    "compensate": "back",
    "skip_compensation": "skip",
    "stop_and_compensate": "back",
    "escalate": "esc",
    "resume": "right",
    "continue_compensation": "right",
    "assign": "right",
    "confirm_verdict": "sign",
    "decline_verdict": "skip",
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One row of the panel. `sentence` is the server's own reason when it is switched off."""

    id: str
    verb: str
    step: str
    label: Words
    about: Words
    reach: Words
    icon: str
    key: str
    allowed: bool
    picked: bool
    sentence: str
    why_icon: str


@dataclass(frozen=True, kw_only=True)
class SmallForm:
    """A form that needs no preview: claim, release, comment, pause; `sentence` says why it is switched off."""

    verb: str
    label: Words
    command_id: str
    draft: str = ""
    sentence: str = ""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The whole panel without the preview."""

    offers: tuple[Choice, ...]
    allowed: int
    summary: str
    jump: str
    nothing: str
    claims: tuple[SmallForm, ...]
    comment: SmallForm | None
    pause: SmallForm | None
    withdraw: SmallForm | None
    reopen: SmallForm | None
    ask: SmallForm | None


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call as it will go out."""

    number: int
    line: SafeString
    body: SafeString | None
    key: SafeString | None
    text: Words


@dataclass(frozen=True, kw_only=True)
class EndShown:
    """An acceptable end state with its conditions as just read."""

    title: SafeString
    met: bool
    checks: tuple[Check, ...]
    opens: tuple[SafeString, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A preview in words, with the form that runs it."""

    id: str
    verb: str
    step: str
    version: int
    command_id: str
    title: Words
    icon: str
    run: Words
    calls_title: str
    calls: tuple[Call, ...]
    no_calls: str
    checks: tuple[Check, ...]
    ends: tuple[EndShown, ...]
    outcomes: tuple[Fork, ...]
    irreversible: tuple[SafeString, ...]
    nothing_irreversible: str
    before: SafeString | None
    after: SafeString | None
    stays: tuple[SafeString, ...]
    never: str
    signoff: str
    fields: tuple[Field, ...]
    once: str


def choice_id(verb: str, step: str) -> str:
    """How a choice is named in the address and in the page."""
    return f"{verb}.{step}" if step else verb


def panel(
    offers: Iterable[Offer],
    *,
    picked: str,
    draft: str = "",
    closed: str = "",
    mine: bool = False,
    held: bool = False,
    small: Mapping[str, tuple[Field, ...]] = MappingProxyType({}),
) -> Panel:
    """Allowed offers in the server's order, then the switched-off ones with their reasons. `held`: by somebody else.

    `small` has the fields of the forms that need no preview, by verb.
    """
    all_offers = tuple(offers)
    in_bar = ("release",) if mine else IN_BAR
    shown = [_choice(offer, picked) for offer in all_offers if offer.needs_preview]
    shown.sort(key=lambda one: not one.allowed)
    allowed = sum(one.allowed for one in shown)
    by_verb = {offer.verb: offer for offer in all_offers if not offer.needs_preview}
    comment, ask = by_verb.get("comment"), by_verb.get("ask_for_case")
    pause, withdraw, reopen = (
        by_verb.get(verb) for verb in ("pause_compensation", "withdraw_signoff", "reopen")
    )
    return Panel(
        offers=_unique_keys(shown),
        allowed=allowed,
        summary=_summary(allowed, len(shown) - allowed),
        jump=ngettext("Decide: {n} action allowed", "Decide: {n} actions allowed", allowed).format(n=allowed),
        nothing=closed or _("No action is allowed for you now. The reasons stand above."),
        claims=tuple(
            replace(_small(one), label=_("Take over")) if held and one.verb == "claim" else _small(one)
            for one in all_offers
            if one.verb in in_bar and one.allowed
        ),
        comment=_small(comment, draft) if comment and comment.allowed else None,
        pause=_small(pause) if pause else None,
        withdraw=_small(withdraw, fields=small.get("withdraw_signoff", ())) if withdraw else None,
        reopen=_small(reopen, fields=small.get("reopen", ())) if reopen else None,
        ask=_small(ask, fields=small.get("ask_for_case", ())) if ask and ask.allowed else None,
    )


def _summary(allowed: int, off: int) -> str:
    words = ngettext("{n} allowed", "{n} allowed", allowed).format(n=allowed)
    if off:
        return _("{allowed}, {off} switched off").format(allowed=words, off=off)
    return words


def _small(offer: Offer, draft: str = "", fields: tuple[Field, ...] = ()) -> SmallForm:
    return SmallForm(
        verb=offer.verb,
        label=offer.label,
        command_id=uuid.uuid4().hex,
        draft=draft,
        sentence=str(offer.sentence or ""),
        fields=fields,
    )


def _unique_keys(choices: list[Choice]) -> tuple[Choice, ...]:
    """A letter picks the first choice of its verb only; the others are reached by arrows or Tab."""
    seen: set[str] = set()
    unique = []
    for one in choices:
        repeated = bool(one.key) and one.key in seen
        seen.add(one.key)
        unique.append(replace(one, key="") if repeated else one)
    return tuple(unique)


def _choice(offer: Offer, picked: str) -> Choice:
    own = choice_id(offer.verb, offer.step)
    return Choice(
        id=own,
        verb=offer.verb,
        step=offer.step,
        label=label(offer),
        about=_("Only what was refused; the others are not touched")
        if offer.items
        else verb_words.about(offer.verb),
        reach=reach_words(offer),
        icon=ICONS.get(offer.verb, "dots"),
        key=offer.key,
        allowed=offer.allowed,
        picked=offer.allowed and own == picked,
        sentence=str(offer.sentence or ""),
        why_icon="pause" if offer.code == "frozen" else "lock",
    )


def label(offer: Offer) -> Words:
    """The name of an action; of a call over many with the number of parts that it sends."""
    if not offer.items:
        return offer.label
    return ngettext("Retry {n} item of {tool}", "Retry {n} items of {tool}", offer.items).format(
        n=offer.items, tool=offer.tool
    )


def reach_words(offer: Offer) -> str:
    """How far an action reaches: it reads, it writes so many times, or it only records."""
    if offer.reach == "writes":
        return (
            ngettext("{n} write", "{n} writes", offer.writes).format(n=offer.writes)
            if offer.writes
            else _("writes")
        )
    return {"read_only": _("read only"), "record_only": _("record only")}.get(offer.reach, "")


def shown(
    preview: Preview, *, label: Words, clock: Clock, fields: tuple[Field, ...], command_id: str
) -> Shown:
    """The preview in its five sections."""
    reads_only = all(not call.changes_state for call in preview.calls)
    nothing = _("Nothing. This changes no state outside.") if reads_only else _("Nothing.")
    return Shown(
        id=preview.id,
        verb=preview.verb,
        step=preview.step,
        version=preview.version,
        command_id=command_id,
        title=label,
        icon=ICONS.get(preview.verb, "dots"),
        run=_run_words(preview, label),
        calls_title=_("Exactly what will run") if preview.calls else _("Exactly what will change"),
        calls=tuple(_call(call, preview) for call in preview.calls),
        no_calls=verb_words.record_only(preview.verb),
        checks=tuple(_checks(preview, clock)),
        ends=tuple(_end(end, clock, preview.calls) for end in preview.end_states),
        outcomes=tuple(fork(when, then) for when, then in preview.outcomes),
        irreversible=tuple(text.inert(one, 300) for one in preview.irreversible),
        nothing_irreversible=nothing,
        before=_arguments(preview.args_before),
        after=_arguments(preview.args_after) if preview.args_after != preview.args_before else None,
        stays=tuple(text.inert(one, 300) for one in preview.stays),
        never=_("Will never run: {steps}").format(steps=", ".join(preview.never_sent))
        if preview.never_sent
        else "",
        signoff=_second(preview),
        fields=fields,
        once=_("Runs once, request {id}. A second click shows the first result.").format(id=command_id[:8]),
    )


def _run_words(preview: Preview, label: Words) -> Words:
    if preview.verb == "accept_items":
        return _("Accept the picked items")
    return _("Retry the picked items") if any(call.items for call in preview.calls) else label


def _second(preview: Preview) -> str:
    """What a second person has to do with it."""
    if preview.needs_signoff:
        return _("This needs a sign-off by a second person before it runs.")
    if preview.needs_second:
        return _("What you state is kept. It counts once a second person confirms it.")
    return ""


def _arguments(args: Json) -> SafeString | None:
    return None if args is None else text.as_json(args, 4000)


def _call(call: PlannedCall, preview: Preview) -> Call:
    directions = {
        "query": _("Read only."),
        "read": _("Read only."),
        "forward": _("Changes state."),
        "compensation": _("Makes up for a step."),
    }
    line = f"{call.system}  {call.line}" if call.system and call.system not in call.line else call.line
    body = None
    if call.changes_state and call.body not in (None, {}, ""):
        body = text.as_line(call.body, 240) if call.items else text.as_json(call.body, 600)
    return Call(
        number=call.number,
        line=text.inert(line, 400),
        body=body,
        key=text.inert(call.key, 200) if call.key and call.changes_state else None,
        text=text.say(
            "{kind} {words}",
            kind=_reach_of(call, preview) or directions.get(call.direction, ""),
            words=call.text,
        ),
    )


def _reach_of(call: PlannedCall, preview: Preview) -> str:
    """When a call goes out, or with how many items; "" where its direction says it all."""
    if call.end_state:
        title = next((end.title for end in preview.end_states if end.id == call.end_state), call.end_state)
        return _("Only with “{title}”, as a run of its own:").format(title=title)
    if call.items:
        return ngettext(
            "{n} item goes out, none else is touched.",
            "{n} items go out, none else is touched.",
            len(call.items),
        ).format(n=len(call.items))
    return ""


def _checks(preview: Preview, clock: Clock) -> Iterator[Check]:
    for check in preview.checks:
        icon = "unk" if check.ok is None else "ok" if check.ok else "bad"
        yield Check(icon=icon, says=text.inert(str(check.text), 300), at=clock.time(check.at))
    yield from dry_run.told(preview.dry_runs, clock)


def _end(end: EndStateCheck, clock: Clock, calls: Iterable[PlannedCall]) -> EndShown:
    checks = tuple(
        Check(
            icon=_met_icon(condition.met),
            says=text.inert(": ".join(part for part in (condition.text, condition.evidence) if part), 300),
            at=clock.time(condition.read_at),
        )
        for condition in end.conditions
    )
    opens = tuple(text.inert(call.text, 160) for call in calls if call.end_state == end.id)
    return EndShown(title=text.inert(end.title, 160), met=end.met, checks=checks, opens=opens)


def _met_icon(met: bool | None) -> str:
    return "unk" if met is None else "ok" if met else "wait"


def met_ends(preview: Preview) -> list[tuple[str, Words]]:
    """The end states to choose from, the ones that hold first."""
    ordered = sorted(preview.end_states, key=lambda end: not end.met)
    return [
        (end.id, end.title if end.met else _("{title} (not met)").format(title=end.title)) for end in ordered
    ]
