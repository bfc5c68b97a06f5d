"""The alarms in words: what each means and what to do about it, as docs/operations.md says (a test compares them)."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What an alarm means, and what to do."""

    means: Words
    do: Words


REMEDIES: dict[str, Remedy] = {
    "compensation.dangling": Remedy(
        means=_("a compensation has been outstanding for five minutes"),
        do=_("open its case; look at its tool"),
    ),
    "compensation.older_than_a_day": Remedy(
        means=_("one has been outstanding for a day"),
        do=_("somebody has to decide; nothing else will"),
    ),
    "run.not_moving": Remedy(
        means=_("runs have been due for 30 s and nobody takes them"),
        do=_("workers, sweep, locks in PostgreSQL"),
    ),
    "run.quarantined": Remedy(
        means=_("runs were set aside: they broke five deliveries or killed three workers at one place"),
        do=_(
            "the log lines step.impossible, advance.failed, worker.dead; resume the case once the cause is gone"
        ),
    ),
    "worker.none": Remedy(
        means=_("nothing drains just now; normal while there is nothing to do"),
        do=_("together with run.not_moving: start a worker"),
    ),
    "outbox.lagging": Remedy(
        means=_("events wait for more than a minute"),
        do=_("the relay, the broker"),
    ),
    "outbox.parked": Remedy(
        means=_("an event could not be published five times"),
        do=_("event.not_published, above"),
    ),
    "handoff.late": Remedy(
        means=_("cases are past their time"),
        do=_("people"),
    ),
    "handoff.escalated": Remedy(
        means=_("escalated cases that nobody has claimed"),
        do=_("whoever the chain names; manage.py teams queues"),
    ),
    "queue.unattended": Remedy(
        means=_("cases of a team are late and nobody of it holds a single one"),
        do=_("find out who is on duty there"),
    ),
    "gate.paused": Remedy(
        means=_("a tool refused our credential; nobody calls it"),
        do=_("renew the credential, then open the tool on the page Freeze"),
    ),
    "gate.long_wait": Remedy(
        means=_("calls have waited five minutes for their turn at a tool"),
        do=_("manage.py gates shows which; its limit, or who floods it"),
    ),
    "worker.deaf": Remedy(
        means=_(
            "the broker takes bells and nobody hears them for a minute; "
            "or one of several workers has heard none for a few minutes while the others do"
        ),
        do=_(
            "restart the worker (ears in manage.py health workers, below). "
            "Nothing is lost: the sweep drains by itself meanwhile. "
            "A worker that was killed the hard way counts for a quarter of an hour"
        ),
    ),
    "callback.unmatched": Remedy(
        means=_("a callback has fitted no call of ours for ten minutes; it is kept, and counts for a week"),
        do=_("ask its sender what it is about; look for a run that was started elsewhere"),
    ),
    "reconciliation.overdue": Remedy(
        means=_("no comparison for two hours"),
        do=_("the sweep; or manage.py reconcile by hand"),
    ),
    "reconciliation.drift": Remedy(
        means=_("the last comparison found effects that are not as recorded"),
        do=_("the cases it opened; somebody may have changed things by hand"),
    ),
}

QUIET = frozenset({"worker.none"})
"""Alarms that mean nothing by themselves: they count together with another one."""


def remedy(code: str) -> Remedy:
    """The words for an alarm; one from the future is sent to the operators' page."""
    return REMEDIES.get(code) or Remedy(means=code, do=_("see docs/operations.md"))
