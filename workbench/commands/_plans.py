"""Recovery plans: the preview of a whole compensation with what was just read for it, under an id and a digest.

A plan is a preview like any other (`_previews`), only larger: it is never changed, lives for a quarter of an hour and is
run by `dispatch` under its own id, so that it runs once. Leaving out a step makes another plan.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from sagas import api
from sagas.facts import Actor, ChangeSeen, ConditionCheck, PlanLook, RunFacts
from tools import canonical
from workbench.commands import _previews
from workbench.commands._previews import Preview, make_preview
from workbench.commands._result import Order
from workbench.errors import Answer, Moment, Refusal, Sentence
from workbench.models import Preview as StoredPreview
from workbench.models import Receipt, User

LIFE = timedelta(minutes=15)
VERB = "compensate"
NAME = "pl"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan as it was shown. `digest` covers the calls, what is left out and why; `looks` are the reads in running
    order; `ran_at` is when its maker ordered it, None while nobody has.
    """

    preview: Preview
    by: str
    by_name: str
    digest: str
    leave_out: tuple[str, ...]
    why_left_out: str
    looks: tuple[PlanLook, ...]
    ran_at: datetime | None = None

    @property
    def id(self) -> str:
        """Its reference; the id of the command that runs it, too."""
        return self.preview.id


@dataclass(frozen=True, kw_only=True)
class Fallen:
    """A precondition that held when a plan was made and does not hold, or cannot be read, any more."""

    step: str
    item: str
    then: ConditionCheck
    now: ConditionCheck


def read_again(plan: Plan, facts: RunFacts) -> tuple[Fallen, ...]:
    """Read once more what the compensations of a plan rest on: what has fallen since it was made.

    What is not part of the run's way back any more rests on nothing and is left out. Reads outside a transaction.
    """
    held = {
        (look.step, look.item, check.text): check
        for look in plan.looks
        for check in look.preconditions
        if check.met is True
    }
    if not held:
        return ()
    return tuple(
        Fallen(step=look.step, item=look.item, then=held[known], now=check)
        for look in api.look_plan(facts, leave_out=plan.leave_out)
        for check in look.preconditions
        if check.met is not True and (known := (look.step, look.item, check.text)) in held
    )


FALLEN = "precondition_fallen"
"""The code of the refusal of a plan that rests on something which does not hold any more."""


def is_plan(preview_id: str) -> bool:
    """Whether a reference is that of a plan, and not of a plain preview."""
    return preview_id.startswith(f"{NAME}_")


def why_fallen(order: Order, facts: RunFacts) -> Refusal | None:
    """Why the plan that is ordered may not run: read again, something that it rests on does not hold any more.

    What cannot be read is not proved to have fallen: the engine looks again right before each call. None for an order
    that is about no plan. Reads outside a transaction.
    """
    plan = find_plan(order.preview_id, handoff_ref=order.handoff_ref)
    fallen = [one for one in read_again(plan, facts) if one.now.met is False] if plan is not None else []
    if not fallen:
        return None
    first, then, now = fallen[0], fallen[0].then, fallen[0].now
    text = ngettext_lazy(
        "A precondition of %(step)s has fallen: %(what)s. Read at %(then_at)s: %(then)s. Read at %(now_at)s: %(now)s. "
        "Nothing was sent. Make a new plan.",
        "%(count)s preconditions have fallen, first one of %(step)s: %(what)s. Read at %(then_at)s: %(then)s. "
        "Read at %(now_at)s: %(now)s. Nothing was sent. Make a new plan.",
        len(fallen),
    )
    parts = {
        "count": len(fallen),
        "step": f"{first.step}[{first.item}]" if first.item else first.step,
        "what": now.text,
        "then": then.evidence or _("so"),
        "then_at": Moment(then.read_at, facts.now, seconds=True),
        "now": now.evidence or _("not so"),
        "now_at": Moment(now.read_at, facts.now, seconds=True),
    }
    return Refusal(answer=Answer.CONFLICT, code=FALLEN, sentence=Sentence(text, parts))


def make_plan(
    *,
    actor: Actor,
    person: User | None,
    facts: RunFacts,
    leave_out: tuple[str, ...] = (),
    why_left_out: str = "",
) -> Plan:
    """Read what the compensations rest on, store the plan and return it. Raises Refused where it could not be run."""
    arguments = {"leave_out": list(leave_out), "why_left_out": why_left_out} if leave_out else {}
    kept: dict[str, Any] = {}

    def beside(preview: Preview) -> Mapping[str, Any]:
        looks = api.look_plan(facts, leave_out=leave_out)
        kept["plan"] = {
            "by_name": actor.name,
            "digest": _digest(preview, leave_out, why_left_out),
            "leave_out": list(leave_out),
            "why_left_out": why_left_out if leave_out else "",
            "looks": [dataclasses.asdict(look) for look in looks],
        }
        return kept

    preview = make_preview(
        actor=actor,
        person=person,
        facts=facts,
        verb=VERB,
        arguments=arguments,
        life=LIFE,
        name=NAME,
        beside=beside,
    )
    return _plan(preview, actor.id, _previews.plain(kept["plan"]))


def find_plan(ref: str, *, handoff_ref: str) -> Plan | None:
    """A plan of this case, whoever made it."""
    if not is_plan(ref):
        return None
    row = StoredPreview.objects.filter(ref=ref, handoff_ref=handoff_ref, verb=VERB).first()
    if row is None:
        return None
    receipt = Receipt.objects.filter(actor_id=row.actor_id, command_id=row.ref).first()
    plan = _plan(_previews.restored(row), row.actor_id, row.content["plan"])
    return dataclasses.replace(plan, ran_at=receipt.at if receipt else None)


def plan_that_ran(run_ref: str) -> Plan | None:
    """The plan that was ordered last for this run."""
    rows = StoredPreview.objects.filter(run_ref=run_ref, verb=VERB, ref__startswith=f"{NAME}_")
    ran = dict(
        Receipt.objects.filter(command_id__in=rows.values("ref"), verb=VERB).values_list("command_id", "at")
    )
    row = rows.filter(ref__in=ran).order_by("-created_at").first()
    if row is None:
        return None
    plan = _plan(_previews.restored(row), row.actor_id, row.content["plan"])
    return dataclasses.replace(plan, ran_at=ran[row.ref])


def _digest(preview: Preview, leave_out: tuple[str, ...], why: str) -> str:
    """What tells one plan from another: every call in its order, what is left out and why, at which version."""
    calls = [_previews.plain(dataclasses.asdict(call)) for call in preview.calls]
    about = {"run": preview.run_ref, "case": preview.handoff_ref, "version": preview.version}
    return str(canonical.digest({**about, "calls": calls, "leave_out": list(leave_out), "why": why}))


def _plan(preview: Preview, by: str, kept: Mapping[str, Any]) -> Plan:
    return Plan(
        preview=preview,
        by=by,
        by_name=kept["by_name"],
        digest=kept["digest"],
        leave_out=tuple(kept["leave_out"]),
        why_left_out=kept["why_left_out"],
        looks=tuple(_look(look) for look in kept["looks"]),
    )


def _look(kept: Mapping[str, Any]) -> PlanLook:
    changes = tuple(
        ChangeSeen(**{**one, "read_at": datetime.fromisoformat(one["read_at"])}) for one in kept["changes"]
    )
    preconditions = _previews.conditions(kept["preconditions"])
    return PlanLook(**{**kept, "preconditions": preconditions, "changes": changes})
