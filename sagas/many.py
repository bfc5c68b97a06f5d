"""How many cases stand at once, for whoever acts on a list of them. Reads only; decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db import connection

from sagas.facts import CaseStanding
from sagas.states import RunState


def standings(handoff_refs: Sequence[str]) -> Mapping[str, CaseStanding]:
    """By handoff: the state of its run now; what there is none of is left out. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT h.ref, r.ref, r.state, r.version, r.seq, h.resolved_at, EXISTS ("
            "  SELECT 1 FROM sagas_handoff o WHERE o.run_id = r.id AND o.state <> 'resolved') "
            "FROM sagas_handoff h JOIN sagas_run r ON r.id = h.run_id WHERE h.ref = ANY(%s)",
            [list(handoff_refs)],
        )
        rows = cursor.fetchall()
    return {
        row[0]: CaseStanding(
            handoff_ref=row[0],
            run_ref=row[1],
            state=RunState(row[2]),
            version=row[3],
            seq=row[4],
            closed_at=row[5],
            with_person=row[6],
        )
        for row in rows
    }


def likenesses(handoff_refs: Sequence[str]) -> tuple[str, ...]:
    """What makes these handoffs similar to others: tool, error class, state of the step, workflow version."""
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT DISTINCT "similar" FROM sagas_handoff WHERE ref = ANY(%s) AND "similar" <> \'\' ORDER BY 1',
            [list(handoff_refs)],
        )
        return tuple(row[0] for row in cursor.fetchall())


def arrived(likenesses: Sequence[str], *, since: datetime, besides: Collection[str]) -> int:
    """How many open handoffs of these kinds were opened after a moment, those named `besides` left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM sagas_handoff WHERE state <> 'resolved' AND \"similar\" = ANY(%s) "
            "AND opened_at > %s AND ref <> ALL(%s)",
            [list(likenesses), since, list(besides)],
        )
        return int(cursor.fetchone()[0])
