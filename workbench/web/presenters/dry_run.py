"""Dry runs in words: what a tool's test mode said about a call, or that the tool offers none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import DryRunSeen
from workbench.web.presenters import text
from workbench.web.presenters.checks import Check
from workbench.web.presenters.clock import Clock

ICONS = {True: "ok", False: "bad", None: "unk"}


def told(seen: Sequence[DryRunSeen], clock: Clock) -> Iterator[Check]:
    """One line for each call whose tool offers a dry run, one for all the others."""
    for one in seen:
        if one.offered:
            says = text.say(_("Dry run of {tool}: {said}"), tool=one.tool, said=_said(one))
            yield Check(icon=ICONS[one.accepted], says=says, at=clock.time(one.read_at))
    if seen and not any(one.offered for one in seen):
        none = ngettext(
            "Dry run: not offered by this tool",
            "Dry run: not offered by these tools",
            len({one.tool for one in seen}),
        )
        yield Check(icon="held", says=text.say(none), at="")


def of_call(seen: DryRunSeen | None, clock: Clock, *, first: bool) -> Check:
    """The dry run of one call of a plan; one that is refused may be accepted on the way, but for the first call."""
    if seen is None or not seen.offered:
        return Check(icon="held", says=text.say(_("Not offered by this tool, read checks only")), at="")
    at = clock.time(seen.read_at)
    if seen.accepted is False and not first:
        says = _("Refused as things stand now ({said}), tried again right before its call")
        return Check(icon="wait", says=text.say(says, said=seen.detail), at=at)
    return Check(icon=ICONS[seen.accepted], says=_said(seen), at=at)


def summary(seen: Sequence[DryRunSeen], clock: Clock) -> Check:
    """The dry runs of a whole plan as one line."""
    offered = [one for one in seen if one.offered]
    if not offered:
        return Check(
            icon="held", says=text.say(_("Dry run: not offered by these tools, read checks only")), at=""
        )
    counts = (
        (sum(one.accepted is True for one in offered), _("{n} accepted")),
        (sum(one.accepted is False for one in offered), _("{n} refused")),
        (sum(one.accepted is None for one in offered), _("{n} not known")),
        (len(seen) - len(offered), _("{n} not offered")),
    )
    parts = _(", ").join(words.format(n=number) for number, words in counts if number)
    worst = min((one.accepted for one in offered), key=(False, None, True).index)
    return Check(
        icon=ICONS[worst],
        says=text.say(_("Dry run: {counts}"), counts=parts),
        at=clock.time(max(one.read_at for one in offered)),
    )


def _said(seen: DryRunSeen) -> SafeString:
    if seen.accepted is None:
        return text.say(_("not known ({said})"), said=seen.detail or _("not tried, there was no time"))
    if seen.accepted:
        return text.say(_("Accepted by the provider’s test mode"))
    return text.say(_("Refused by the provider’s test mode ({said})"), said=seen.detail)
