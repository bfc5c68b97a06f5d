"""Verdicts that take two persons: proposed by one, confirmed or declined by another, void when facts change."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from sagas.errors import NotAllowed
from sagas.facts import Actor, Obstacle
from sagas.ledger.approvals import shapers
from sagas.ledger.desk import Author, Desk, basis, opened
from sagas.models import Handoff, Proposal
from sagas.states import Machine, ProposalState
from tools.contract import Json

LIFE_MINUTES = 60
"""A statement that nobody confirmed by then says nothing any more."""


def propose(
    desk: Desk, handoff: Handoff, verb: str, step: str, arguments: dict[str, Json], *, actor: Actor
) -> Proposal:
    """Keep one person's verdict until a second person confirms it. Raises `NotAllowed` while another one waits."""
    if desk.proposal is not None:
        raise NotAllowed(waiting(desk.proposal))
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('sagas_proposal', 'id'))")
        (pk,) = cursor.fetchone()
    row = Proposal(
        pk=pk,
        ref=f"VP-{1000 + pk}",
        run=desk.run,
        handoff=handoff,
        verb=verb,
        step=step,
        arguments=arguments,
        basis=basis(desk.facts()),
        shapers=shapers(desk),
        proposed_by=actor.id,
        proposed_by_name=actor.name,
        reason=desk.author.reason if desk.author else "",
        reason_code=desk.author.reason_code if desk.author else "",
        proposed_at=desk.now,
        expires_at=desk.now + timedelta(minutes=LIFE_MINUTES),
    )
    desk.say(
        "verdict.proposed",
        actor=actor,
        machine=Machine.PROPOSAL.value,
        object_id=pk,
        object_version=1,
        step=step,
        target=ProposalState.OPEN.value,
        after={"ref": row.ref, "verb": verb, **arguments, "expires_at": row.expires_at.isoformat()},
    )
    row.save(force_insert=True)
    desk.proposals.append(row)
    return row


def waiting(row: Proposal) -> Obstacle:
    """Why nothing else is stated while a proposal waits."""
    return Obstacle(
        code="proposal_waits",
        sentence=f"{row.proposed_by_name} has stated something that waits for a second person.",
        params={"who": row.proposed_by_name},
    )


def open_one(desk: Desk) -> Proposal:
    """The proposal that waits, still good. Raises `NotAllowed`."""
    row = desk.proposal
    if row is None or row.expires_at <= desk.now or row.basis != basis(desk.facts()):
        sentence = "Nothing waits for a second person any more."
        raise NotAllowed(Obstacle(code="no_proposal", sentence=sentence))
    return row


def confirm(desk: Desk, row: Proposal, *, actor: Actor) -> None:
    """A second person stands to it; the verdict follows in the same transaction. Raises `NotAllowed` for the first
    person and for whoever worked on the run before.
    """
    if actor.id == row.proposed_by or any(one["id"] == actor.id for one in row.shapers):
        sentence = "You stated it or worked on it, somebody else must confirm it."
        raise NotAllowed(Obstacle(code="own_proposal", sentence=sentence))
    _decide(desk, row, "confirm", ProposalState.CONFIRMED, actor)


def decline(desk: Desk, row: Proposal, *, actor: Actor) -> None:
    """Somebody does not stand to it, or the first person takes it back; nothing is settled."""
    _decide(desk, row, "decline", ProposalState.DECLINED, actor)


def _decide(desk: Desk, row: Proposal, verb: str, target: ProposalState, actor: Actor) -> None:
    desk.move(
        row,
        verb,
        target,
        actor=actor,
        after={"ref": row.ref, "verb": row.verb, "proposed_by": row.proposed_by_name},
        decided_by=actor.id,
        decided_by_name=actor.name,
        decided_at=desk.now,
    )


def void_of(proposer: str, *, actor: Actor, reason: str) -> tuple[str, ...]:
    """Make void what somebody stated who may not decide any more; returns the runs it was about.

    Inside the transaction that takes the right away.
    """
    stated = Proposal.objects.filter(state=ProposalState.OPEN, proposed_by=proposer)
    runs: list[str] = []
    for run_id in sorted(set(stated.values_list("run_id", flat=True))):
        with opened(run_id, author=Author(actor=actor, reason=reason)) as desk:
            row = desk.proposal
            if row is not None and row.proposed_by == proposer:
                desk.move(row, "void", ProposalState.VOID, actor=actor, after={"ref": row.ref})
                runs.append(desk.run.ref)
            desk.due_at = desk.run.due_at
            desk.close(release=False)
    return tuple(runs)


def names(row: Proposal, actor: Actor) -> str:
    """Who stands to a verdict, for the record of what it settled."""
    return f"{row.proposed_by_name} and {actor.name}"
