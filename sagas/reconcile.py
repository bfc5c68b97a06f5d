"""Reconciliation: asks the systems what is there and compares it with the record (S2-16, S2-12).

Three answers: confirmed, drift, could not be checked. Drift on a run opens a handoff; nothing is repaired by itself.
Reads only, outside any transaction, paced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import structlog
from django.db import connection
from django.db.models import Q

from sagas import entries, faultpoints, planner
from sagas.facts import ActionFacts, RunFacts
from sagas.ledger.desk import opened
from sagas.looking import look_at
from sagas.models import Entry, Finding, Reconciliation, Run
from sagas.previews import scope
from sagas.published import pinned
from sagas.queries import facts_of_run, now
from sagas.reasons import Reason
from sagas.states import ActionState, HandoffState
from sagas.tx import durable
from tools.bindings import Unbindable, bind
from tools.outcome import QueryAnswer, Verdict, classify_query
from tools.world import World

log = structlog.get_logger(__name__)

EVERY = timedelta(hours=1)
LOCK = 0x5EC0
_DRIFT = "reconciliation.drift"
MOST_RUNS = 5000
PAUSE_S = 0.005
"""Seconds between two reads, so that a pass is never a storm."""

type Progress = Callable[[str], None]


class Found(StrEnum):
    """What a look at the outside says about one action."""

    CONFIRMED = "confirmed"
    DRIFT = "drift"
    UNREAD = "could_not_check"


@dataclass(frozen=True, kw_only=True)
class Pass:
    """What one pass came to."""

    looked: int = 0
    confirmed: int = 0
    drift: int = 0
    unread: int = 0


def due() -> bool:
    """Whether an hour has passed since the last pass began."""
    newest = Reconciliation.objects.order_by("-started_at").values_list("started_at", flat=True).first()
    return newest is None or now() - newest >= EVERY


def reconcile(
    world: World, *, progress: Progress = lambda line: None, go_on: Callable[[], bool] = lambda: True
) -> Pass | None:
    """Compare every run that changed since the last finished pass, or could not be checked in it.

    None: another process is at it.

    Runs that were only read, and runs in flight, are left to the next pass. `go_on` is asked before each run: once it
    says no the pass ends where it is, and the next one begins there.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return None
    try:
        return _pass(world, progress, go_on)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _pass(world: World, progress: Progress, go_on: Callable[[], bool]) -> Pass:
    before = Reconciliation.objects.exclude(finished_at=None).order_by("-started_at").first()
    since = before.up_to if before is not None else None
    row = Reconciliation.objects.create()
    runs = Run.objects.filter(owner="").order_by("changed_at", "id")
    if since is not None:
        # What could not be checked the last time is asked about again, though nothing has changed here.
        unread = Finding.objects.filter(reconciliation=before, verdict=Found.UNREAD.value)
        runs = runs.filter(Q(changed_at__gt=since) | Q(pk__in=unread.values("run_id")))
    listed = list(runs.values_list("ref", "changed_at")[:MOST_RUNS])
    counted = dict.fromkeys(Found, 0)
    for number, (ref, changed_at) in enumerate(listed, start=1):
        if not go_on():
            break
        for found in _compare(row, facts_of_run(ref, unmasked=True), world):
            counted[found] += 1
        row.up_to = max(since or changed_at, changed_at)
        if number % 50 == 0:
            progress(f"{number} of {len(listed)} runs compared, drift {counted[Found.DRIFT]}")
    Reconciliation.objects.filter(pk=row.pk).update(
        finished_at=now(),
        up_to=row.up_to or since,
        looked=sum(counted.values()),
        confirmed=counted[Found.CONFIRMED],
        drift=counted[Found.DRIFT],
        unread=counted[Found.UNREAD],
    )
    if counted[Found.DRIFT]:
        log.error("reconciliation.drift", drift=counted[Found.DRIFT])
    return Pass(
        looked=sum(counted.values()),
        confirmed=counted[Found.CONFIRMED],
        drift=counted[Found.DRIFT],
        unread=counted[Found.UNREAD],
    )


def _compare(row: Reconciliation, facts: RunFacts, world: World) -> list[Found]:
    found: list[Found] = []
    for action in (*planner.units(facts), *_given_up(facts)):
        seen = _look(facts, action, world)
        if seen is None:
            continue
        verdict, detail = seen
        found.append(verdict)
        time.sleep(PAUSE_S)
        if verdict is Found.CONFIRMED:
            continue
        Finding.objects.create(
            reconciliation=row,
            run_id=facts.id,
            action_id=action.id,
            verdict=verdict.value,
            detail=detail[:2000],
        )
        if verdict is Found.DRIFT:
            _raise_drift(facts, action, detail)
    return found


def _look(facts: RunFacts, action: ActionFacts, world: World) -> tuple[Found, str] | None:
    """None: there is nothing outside to compare with."""
    if not action.contract.has_effect:
        return None
    match action.state:
        case ActionState.CONFIRMED:
            faultpoints.reach("reconcile.before_query", run=facts.ref, tool=action.tool)
            return _still_there(facts, action, world)
        case ActionState.COMPENSATED:
            return _gone(facts, action, world)
        case ActionState.SUPERSEDED:
            return _never_came(facts, action, world)
        case _:
            return None


def _given_up(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """Older generations that were sent and are on record as without effect: their keys keep being watched (law 10)."""
    wholes = (action for action in facts.actions if action.state is ActionState.SUPERSEDED)
    return tuple(
        unit
        for whole in wholes
        for unit in (whole.items or (whole,))
        if unit.sent_at is not None and unit.confirm_seq is None
    )


def _still_there(facts: RunFacts, action: ActionFacts, world: World) -> tuple[Found, str] | None:
    query = action.contract.status_query
    answer = _asked(facts, action, world)
    if query is None or answer is None:
        return None
    match answer.verdict:
        case Verdict.FOUND:
            return Found.CONFIRMED, ""
        case Verdict.NO_ANSWER:
            return Found.UNREAD, answer.detail
        case _ if not query.authoritative:
            return Found.UNREAD, answer.detail
        case _:
            return Found.DRIFT, f"recorded as confirmed, and {query.tool} says: {answer.detail}"


def _never_came(facts: RunFacts, action: ActionFacts, world: World) -> tuple[Found, str] | None:
    """Whether a call whose key was given up took effect after all. What a later generation did is no news."""
    query = action.contract.status_query
    answer = _asked(facts, action, world)
    if query is None or answer is None:
        return None
    match answer.verdict:
        case Verdict.NO_ANSWER:
            return Found.UNREAD, answer.detail
        case Verdict.FOUND:
            successors = [one for one in facts.actions if one.step == action.step and one is not action]
            known = {one.provider_ref for one in successors if one.provider_ref}
            by_key = any(isinstance(one, dict) and one.get("from") == "key" for one in query.args.values())
            if answer.reference in known or not (by_key or answer.reference):
                return Found.CONFIRMED, ""
            return (
                Found.DRIFT,
                f"its key was given up, and {query.tool} knows of an effect {answer.reference}",
            )
        case _:
            return Found.CONFIRMED, ""


def _asked(facts: RunFacts, action: ActionFacts, world: World) -> QueryAnswer | None:
    """What the tool's own status query says of a call; None where it has none."""
    query = action.contract.status_query
    if query is None:
        return None
    names = {**scope(facts, action), "args": action.args, "key": action.key, "item": action.args}
    try:
        args = bind(dict(query.args), names)
    except Unbindable as error:
        return QueryAnswer(verdict=Verdict.NO_ANSWER, detail=str(error))
    contract = pinned(facts.definition_id, query.tool)[1]
    observation = world.call(contract, args=args, key="")
    faultpoints.reach("reconcile.answered", run=facts.ref, tool=action.tool)
    return classify_query(query, observation, names, contract=contract)


def _gone(facts: RunFacts, action: ActionFacts, world: World) -> tuple[Found, str] | None:
    declared = action.contract.compensation
    condition = (declared.already_done or declared.verify) if declared is not None else None
    if condition is None or not condition.read:
        return None
    reads = {condition.read: pinned(facts.definition_id, condition.read)[1]}
    seen = look_at(condition, world, reads, scope(facts, action))
    if seen.met is None:
        return Found.UNREAD, seen.detail
    if seen.met:
        return Found.CONFIRMED, ""
    return Found.DRIFT, f"recorded as compensated, and not so: {seen.text} ({seen.detail})"


def _raise_drift(facts: RunFacts, action: ActionFacts, detail: str) -> None:
    """A final run keeps its state; the contradiction stands beside it as a handoff of its own (law 9)."""
    with durable(), opened(facts.id) as desk:
        if desk.run.version != facts.version:
            return
        linked = desk.run.finished_at is not None
        row = desk.action(action.id)
        about = {"step": row.step, "detail": detail[:500]}
        if any(
            one.state == HandoffState.RESOLVED and about.items() <= one.params.items()
            for one in desk.handoffs
        ):
            return  # somebody has settled this very contradiction
        stands = desk.linked_handoff if linked else desk.handoff
        if stands is not None and _told(desk.run, row.step, detail):
            return  # a person has it already; the pass that said so did not come to its end
        faultpoints.mark("reconcile", run=facts.ref, tool=row.tool)
        if stands is None:
            desk.hand_over(
                Reason.LATE_FACT, action=row, detail=detail, actor=entries.VALIDATOR, linked=linked
            )
        desk.say("reconciliation.drift", actor=entries.VALIDATOR, step=row.step, reason=detail[:2000])
        desk.due_at = desk.run.due_at
        desk.close(release=False)


def _told(run: Run, step: str, detail: str) -> bool:
    said = Entry.objects.filter(run_id=run.pk, name=_DRIFT, step=step, reason=detail[:2000])
    return said.exists()
