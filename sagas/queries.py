"""What is read for people, agents and screens: facts, pages, entries. Writes nothing, locks nothing.

Every list pages by key; nothing counts exactly beyond its cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from sagas import planner
from sagas.errors import NotFound
from sagas.facts import (
    EntryFacts,
    FreezeFacts,
    RunFacts,
    RunPage,
    RunRow,
    SignoffFacts,
    SignoffPage,
    SignoffRow,
)
from sagas.ledger import approvals, window
from sagas.ledger.desk import IN_FORCE, in_force, read_in_force
from sagas.models import (
    Action,
    Attempt,
    Compensation,
    DefinitionVersion,
    Entry,
    Evidence,
    Handoff,
    Permit,
    Proposal,
    Run,
)
from sagas.pagekeys import page_key, read_number, read_page_key
from sagas.picture import run_facts, with_history, without_secrets
from sagas.published import contract_by_id
from sagas.readings import TrailState
from sagas.rows import Statement, as_rows, fetch, select, send
from sagas.states import HandoffState, PermitState, ProposalState

CAP = 1000
"""Counts stop here; a screen shows "1000+"."""


def facts_of_run(run_ref: str, *, unmasked: bool = False) -> RunFacts:
    """The picture of a run with its history; secrets are masked unless reads have to be made with them.

    Raises `NotFound`.
    """
    found = fetch(Run, "WHERE ref = %s", [run_ref])
    if not found:
        raise NotFound("run", run_ref)
    facts = _picture(found[0], None)
    return facts if unmasked else without_secrets(facts)


_STAMP = "SELECT run.version, (SELECT max(seq) FROM sagas_entry WHERE run_id = run.id) FROM sagas_run run"


def stamp_of_run(run_ref: str) -> tuple[int, int]:
    """Version of a run and the number of its last entry: cheap, however long the run. Raises `NotFound`."""
    return _stamp(f"{_STAMP} WHERE run.ref = %s", "run", run_ref)


def stamp_of_handoff(handoff_ref: str) -> tuple[int, int]:
    """The same of the run that a handoff belongs to. Raises `NotFound`."""
    query = f"{_STAMP} JOIN sagas_handoff handoff ON run.id = handoff.run_id WHERE handoff.ref = %s"
    return _stamp(query, "handoff", handoff_ref)


def _stamp(query: str, what: str, ref: str) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(query, [ref])
        found = cursor.fetchone()
    if found is None:
        raise NotFound(what, ref)
    return int(found[0]), int(found[1] or 0)


def facts_of_handoff(handoff_ref: str) -> RunFacts:
    """The picture of the run that a handoff belongs to, with that handoff in front. Raises `NotFound`."""
    handoff = Handoff.objects.filter(ref=handoff_ref).select_related("run").first()
    if handoff is None:
        raise NotFound("handoff", handoff_ref)
    return without_secrets(_picture(handoff.run, handoff.pk))


_OF_RUN = "WHERE run_id = %s ORDER BY id"


def _picture(run: Run, handoff_id: int | None) -> RunFacts:
    own = [run.pk]
    standing, made_up, acted, handed_over, signed, proposed, tried, proven, related = send(
        IN_FORCE,
        *window.of_all(run),
        select(Handoff, _OF_RUN, own),
        select(Permit, _OF_RUN, own),
        select(Proposal, "WHERE run_id = %s AND state = %s", [*own, ProposalState.OPEN.value]),
        select(Attempt, _OF_RUN, own),
        select(Evidence, _OF_RUN, own),
        Statement(
            "SELECT ref, id = %s FROM sagas_run WHERE id = %s OR parent_id = %s ORDER BY id",
            [run.parent_id, run.parent_id, *own],
        ),
    )
    now, freezes, *_ = read_in_force(standing)
    facts = run_facts(
        run,
        as_rows(Action, acted),
        as_rows(Compensation, made_up),
        as_rows(Handoff, handed_over),
        freezes,
        now,
        as_rows(Permit, signed),
        as_rows(Proposal, proposed),
    )
    facts = replace(
        facts,
        parent_ref=next((ref for ref, is_parent in related.rows if is_parent), ""),
        remedies=tuple(ref for ref, is_parent in related.rows if not is_parent),
        # Of a large run the row keeps what was left when it was last read whole; here it is whole.
        effects_left=tuple(action.step for action in planner.effects_left(facts)),
    )
    if handoff_id is not None:
        # A closed handoff is asked for by name: nothing else may lead the picture then.
        facts = replace(facts, handoff=next(one for one in facts.handoffs if one.id == handoff_id))
    return with_history(facts, as_rows(Attempt, tried), as_rows(Evidence, proven))


# --- Signatures -------------------------------------------------------------------------------------------------


def signoffs(*, decided: bool = False, after: str = "", limit: int = 50) -> SignoffPage:
    """Requests for signatures, paged by key: the open ones by expiry, or the decided ones, newest first."""
    rows = Permit.objects.select_related("run", "action", "compensation")
    if decided:
        rows = rows.exclude(state=PermitState.REQUESTED).order_by("-id")
        rows = rows.filter(id__lt=read_number(after)) if after else rows
    else:
        rows = rows.filter(state=PermitState.REQUESTED).order_by("expires_at", "id")
        if after:
            at, pk = read_page_key(after)
            rows = rows.filter(Q(expires_at__gt=at) | Q(expires_at=at, id__gt=pk))
    found = list(rows[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    following = "" if last is None else str(last.pk) if decided else page_key(last.expires_at, last.pk)
    page = found[:limit]
    by = approvals.asked(page)
    return SignoffPage(rows=tuple(_signoff(row, by[row.pk]) for row in page), after=following, now=now())


def signoffs_open() -> int:
    """How many requests still wait for a signature, counted up to `CAP`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT 1 FROM sagas_permit WHERE state = 'requested' AND expires_at > now_() "
            "LIMIT %s) part",
            [CAP],
        )
        return int(cursor.fetchone()[0])


def _signoff(row: Permit, by: approvals.Asked) -> SignoffRow:
    forward = contract_by_id(row.action.contract_id)
    made_up = contract_by_id(row.compensation.contract_id) if row.compensation else None
    return SignoffRow(
        ref=row.ref,
        state=PermitState(row.state),
        run_ref=row.run.ref,
        run_title=row.run.title,
        business_ref=row.run.business_ref,
        step=row.action.step,
        tool=str(row.document["tool"]),
        requesters=tuple((one["id"], one["name"]) for one in row.requesters),
        requested_at=row.requested_at,
        expires_at=row.expires_at,
        decided_by_name=row.decided_by_name,
        decided_at=row.decided_at,
        reason=row.reason,
        title=forward.texts.title,
        system=(made_up or forward).system,
        level=approvals.level_of(forward, made_up),
        amount=row.run.amount,
        currency=row.run.currency,
        asked_by=by.by,
        asked_by_name=by.name,
        why=by.why,
        why_code=by.code,
        forward=made_up is None,
    )


def run_of_permit(permit_ref: str) -> str:
    """The run that a request for a signature belongs to. Raises `NotFound`."""
    ref = Permit.objects.filter(ref=permit_ref).values_list("run__ref", flat=True).first()
    if ref is None:
        raise NotFound("sign-off", permit_ref)
    return ref


def run_id_of(run_ref: str) -> int:
    """The row of a run. Raises `NotFound`."""
    pk = Run.objects.filter(ref=run_ref).values_list("pk", flat=True).first()
    if pk is None:
        raise NotFound("run", run_ref)
    return pk


def facts_of_permit(permit_ref: str) -> SignoffFacts:
    """A request for a signature with the run and the action that it speaks of. Raises `NotFound`."""
    facts = facts_of_run(run_of_permit(permit_ref), unmasked=True)
    row = Permit.objects.select_related("compensation").get(ref=permit_ref)
    return approvals.signoff_facts(facts, row, approvals.asked([row])[row.pk])


# --- Runs and entries -------------------------------------------------------------------------------------------


def runs(
    *,
    after: str = "",
    limit: int = 50,
    search: str = "",
    started_by: str = "",
    workflow: str = "",
    version: int | None = None,
) -> RunPage:
    """Runs, newest first. `search` is a run's reference or a business reference; `workflow` may name a version too.

    Raises `ValueError` for a key that is none.
    """
    found = Run.objects.select_related("definition").order_by("-started_at" if workflow else "-id", "-id")
    if started_by:
        found = found.filter(started_by=started_by)
    if search.strip():
        word = search.strip()
        found = found.filter(Q(ref=word) | Q(business_ref=word))
    if workflow:
        found = _of_workflow(found, workflow, version, after, limit + 1)
    elif after:
        found = found.filter(id__lt=read_number(after))
    rows = list(found[: limit + 1])
    page = rows[:limit]
    open_refs = dict(
        Handoff.objects.filter(run__in=[row.pk for row in page])
        .exclude(state=HandoffState.RESOLVED)
        .values_list("run_id", "ref")
    )
    last = page[-1] if len(rows) > limit else None
    following = "" if last is None else page_key(last.started_at, last.pk) if workflow else str(last.pk)
    return RunPage(rows=tuple(_run_row(row, open_refs) for row in page), after=following, now=now())


def _of_workflow(
    runs: QuerySet[Run], name: str, version: int | None, after: str, limit: int
) -> QuerySet[Run]:
    """The newest of each version, found by its index: a workflow that few runs are of costs no more than another."""
    at, pk = read_page_key(after) if after else (None, None)
    older = Q() if at is None else Q(started_at__lt=at) | Q(started_at=at, id__lt=pk)
    versions = DefinitionVersion.objects.filter(name=name, **({"version": version} if version else {}))
    newest = [
        runs.filter(older, definition=one).values("pk")[:limit]
        for one in versions.values_list("pk", flat=True)
    ]
    return runs.filter(pk__in=newest[0].union(*newest[1:], all=True)) if newest else runs.none()


def _run_row(row: Run, open_refs: Mapping[int, str]) -> RunRow:
    return RunRow(
        ref=row.ref,
        state=row.state,
        version=row.version,
        workflow=row.definition.name or "",
        workflow_version=row.definition.version,
        title=row.title,
        business_ref=row.business_ref,
        started_by=row.started_by_name,
        started_at=row.started_at,
        changed_at=row.changed_at,
        finished_at=row.finished_at,
        handoff_ref=open_refs.get(row.pk, ""),
        effects_left=tuple(row.effects_left),
    )


def entries(
    run_ref: str,
    *,
    after_seq: int = 0,
    limit: int = 500,
    newest: bool = False,
    step: str = "",
    failures: bool = False,
) -> tuple[EntryFacts, ...]:
    """The trail of a run in the order of writing; `newest` takes the last ones of what is too long.

    `step` keeps what is about one step, `failures` what went wrong or came to a person. Raises `NotFound`.
    """
    run = Run.objects.filter(ref=run_ref).only("pk").first()
    if run is None:
        raise NotFound("run", run_ref)
    rows = Entry.objects.filter(run_id=run.pk, seq__gt=after_seq)
    if step:
        rows = rows.filter(step=step)
    if failures:
        rows = rows.filter(name__in=FAILURES)
    if newest:
        return tuple(_entry(row) for row in reversed(rows.order_by("-seq")[:limit]))
    return tuple(_entry(row) for row in rows.order_by("seq")[:limit])


FAILURES = (
    "tool.execution.failed",
    "tool.execution.unknown",
    "tool.execution.partial",
    "tool.compensation.failed",
    "tool.compensation.unknown",
    "human.handoff.started",
    "reconciliation.drift",
    "command.refused",
)
"""The entries that say that something went wrong, or that a person is needed."""


def trail_of(run_ref: str) -> TrailState:
    """How many entries a run has, and how far they have been published. Raises `NotFound`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.seq, (SELECT count(*) FROM sagas_outbox o WHERE o.run_id = r.id "
            "               AND o.published_at IS NULL AND o.parked_at IS NULL), "
            "(SELECT count(*) FROM sagas_outbox o WHERE o.run_id = r.id AND o.parked_at IS NOT NULL) "
            "FROM sagas_run r WHERE r.ref = %s",
            [run_ref],
        )
        row = cursor.fetchone()
    if row is None:
        raise NotFound("run", run_ref)
    entries, waiting, parked = row
    return TrailState(entries=entries, waiting=waiting, parked=parked)


def _entry(row: Entry) -> EntryFacts:
    return EntryFacts(
        id=row.pk,
        seq=row.seq,
        name=row.name,
        at=row.at,
        actor_kind=row.actor_kind,
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        role=row.role,
        reason=row.reason,
        reason_code=row.reason_code,
        step=row.step,
        machine=row.machine,
        source=row.source,
        target=row.target,
        before=row.before,
        after=row.after,
        command_id=row.command_id,
        saw_version=row.saw_version,
    )


def freezes() -> tuple[FreezeFacts, ...]:
    """The freezes in force."""
    return in_force()[1]


def now() -> datetime:
    """The database's clock, the one that due times are read from."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_()")
        moment: datetime = cursor.fetchone()[0]
        return moment
