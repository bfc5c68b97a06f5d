"""A list of cases before anything is sent: who goes, who is left out and why, what goes first, what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workbench.policies import IN_BULK
from workbench.queries.bulks import BulkFacts, MemberFacts, MemberState
from workbench.web.forms import Field
from workbench.web.presenters.bulk import SHOWN, label, title
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Group:
    """Those that are left out for one and the same reason."""

    headline: str
    says: str
    cases: tuple[tuple[str, str], ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One case of the list with the calls that are made for it."""

    ref: str
    url: str
    title: str
    calls: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, kw_only=True)
class Other:
    """Another verb for the same cases, with how many of them it is possible for."""

    verb: str
    label: str
    count: int
    current: bool


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """The page of a list that was not started."""

    ref: str
    title: str
    says: str
    goes: str
    goes_says: str
    left_out: tuple[Group, ...]
    canary: str
    planned: tuple[Planned, ...]
    more: int
    stays: tuple[str, ...]
    cases: tuple[str, ...]
    others: tuple[Other, ...]
    frozen_at: str
    until: str
    fields: tuple[Field, ...]
    run: str
    may_run: bool
    why_not: str
    act_url: str
    again_url: str
    verb: str


def frozen(
    facts: BulkFacts,
    members: Sequence[MemberFacts],
    *,
    fields: tuple[Field, ...],
    why_not: str,
    clock: Clock,
) -> Frozen:
    """The list: who goes, who is left out and why, what goes first, what is needed to start it."""
    going = [one for one in members if one.state is MemberState.WAITING]
    tools = [one.tool for one in going]
    too_old = facts.expires_at <= facts.now
    if too_old:
        why_not = _("This list is too old. Freeze a new one.")
    elif not going:
        why_not = _("It is possible for none of these cases.")
    return Frozen(
        ref=facts.ref,
        title=title(facts, tools),
        says=str(_SAYS[facts.verb]),
        goes=ngettext("{n} case goes", "{n} cases go", len(going)).format(n=len(going)),
        goes_says=_("Everything that speaks against it was checked just now, for each by itself."),
        left_out=tuple(_groups(one for one in members if one.state is MemberState.LEFT_OUT)),
        canary=_canary(facts, going),
        planned=tuple(
            Planned(
                ref=one.handoff_ref,
                url=reverse("case", args=[one.handoff_ref]),
                title=one.title,
                calls=tuple(one.calls),
            )
            for one in going[:SHOWN]
        ),
        more=max(len(going) - SHOWN, 0),
        stays=tuple(dict.fromkeys(text for one in going for text in one.stays))[:SHOWN],
        cases=tuple(f"{one.handoff_ref}:{one.version}" for one in members),
        others=tuple(
            Other(verb=verb, label=label(verb), count=facts.possible.get(verb, 0), current=verb == facts.verb)
            for verb in IN_BULK
        ),
        frozen_at=_("List frozen at {at}").format(at=clock.time(facts.frozen_at)),
        until=_("It can be started until {at}.").format(at=clock.time(facts.expires_at)),
        fields=fields,
        run=_run(facts, tools),
        may_run=bool(going) and not why_not,
        why_not=why_not,
        act_url=reverse("bulk-start", args=[facts.ref]),
        again_url=reverse("bulk"),
        verb=facts.verb,
    )


_SAYS: Mapping[str, Words] = {
    "query_status": gettext_lazy("Each system is asked what has become of its call. Nothing is changed."),
    "retry": gettext_lazy(
        "Each call goes out again under the key of its first attempt where that is still known. Steps that are "
        "confirmed are not touched."
    ),
    "mark_acceptable": gettext_lazy(
        "Each case is closed where every condition of the end state is read and holds. What took effect stays."
    ),
    "assign": gettext_lazy("Each case is handed over to one person. Nothing is sent."),
    "escalate": gettext_lazy("Each case goes up by one level and back to the queue. Nothing is sent."),
}


def _canary(facts: BulkFacts, going: Sequence[MemberFacts]) -> str:
    rest = len(going) - facts.canary
    first = _(", ").join(one.handoff_ref for one in going[: facts.canary])
    if not going:
        return ""
    if rest <= 0:
        return _("{first} go at once and are proved one by one.").format(first=first)
    text = ngettext(
        "{first} go first. The other one starts only when both are verified. If either is not, the bulk stops and "
        "nothing else is sent.",
        "{first} go first. The other {n} start only when both are verified. If either is not, the bulk stops and "
        "nothing else is sent.",
        rest,
    )
    return text.format(first=first, n=rest)


def _run(facts: BulkFacts, tools: Sequence[str]) -> str:
    text = _("{verb} ({n}), first {first} now") if facts.included > facts.canary else _("{verb} ({n})")
    verb = label(facts.verb, sorted({tool for tool in tools if tool}))
    return text.format(verb=verb, n=facts.included, first=facts.canary)


def _groups(members: Iterable[MemberFacts]) -> Iterable[Group]:
    by_reason: dict[str, list[MemberFacts]] = {}
    for one in members:
        by_reason.setdefault(str(one.said), []).append(one)
    for says, those in by_reason.items():
        text = ngettext("{n} is left out", "{n} are left out", len(those))
        named = tuple((one.handoff_ref, reverse("case", args=[one.handoff_ref])) for one in those[:10])
        yield Group(headline=text.format(n=len(those)), says=says, cases=named, more=max(len(those) - 10, 0))


def worded(field: Field, facts: BulkFacts) -> Field:
    """A field with what it is about in this very list."""
    if field.name == "reason":
        text = ngettext("Reason (kept on {n} case)", "Reason (kept on all {n} cases)", facts.included)
        return replace(field, label=text.format(n=facts.included))
    if field.name == "count":
        text = _("Customers or money are touched. Type {n} to confirm.")
        return replace(field, label=text.format(n=facts.typed), note="")
    return replace(field, required=True, note="")
