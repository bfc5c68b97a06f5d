"""One run on the desk: its rows under the run's lock, the moves made on them, and the one write at the end.

Every change of state in the product goes through `Desk.move`. Entries are written before the rows they speak of,
because the database guard asks for the entry when the row changes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from sagas import entries, faultpoints, planner, summary
from sagas.entries import EntryRow
from sagas.errors import ClaimLost, IllegalMove, NotFound
from sagas.escalation import next_alert, schedule
from sagas.facts import Actor, ActorKind, FreezeFacts, RunFacts
from sagas.lanes import SUSPECT_AFTER, Lane
from sagas.ledger import window
from sagas.models import Action, Compensation, Handoff, Outbox, Permit, Proposal, Question, Run
from sagas.picture import run_facts
from sagas.published import contract_by_id, definition_by_id, pinned
from sagas.reasons import Reason
from sagas.rows import Sent, Statement, as_rows, insert, select, send, update
from sagas.states import (
    FINAL_RUN_STATES,
    ActionState,
    CompensationState,
    Direction,
    HandoffState,
    Machine,
    PermitState,
    ProposalState,
    RunState,
    move,
    run_verb,
)
from sagas.teams import team_named
from sagas.tx import FREEZE_SHARED
from tools.bindings import bind
from tools.canonical import fingerprint
from tools.contract import Contract, Json
from tools.definition import Definition

type Row = Action | Compensation | Handoff | Permit | Proposal

_MACHINE: dict[type[Row], Machine] = {
    Action: Machine.ACTION,
    Compensation: Machine.COMPENSATION,
    Handoff: Machine.HANDOFF,
    Permit: Machine.PERMIT,
    Proposal: Machine.PROPOSAL,
}


TRIED_AGAIN = "a person ordered a retry"
"""How the resolution of a handoff begins that comes back if the step fails once more."""


@dataclass(frozen=True, kw_only=True)
class Author:
    """Who makes the moves of this transaction, for which command and why, having seen which version."""

    actor: Actor
    reason: str = ""
    reason_code: str = ""
    command_id: str = ""
    saw_version: int | None = None


@dataclass
class Desk:
    """A run's rows while its lock is held. Build it with `opened`; `close` writes everything."""

    run: Run
    actions: list[Action]
    compensations: dict[int, Compensation]
    handoffs: list[Handoff]
    permits: list[Permit]
    freezes: tuple[FreezeFacts, ...]
    now: datetime
    author: Author | None = None
    proposals: list[Proposal] = field(default_factory=list)
    seen_version: int = 0
    whole: bool = True
    due_at: datetime | None = None
    held: bool = False
    withdrawn: dict[tuple[str, int], str] = field(default_factory=dict)
    held_by: int | None = None
    slow: bool = False
    gated: frozenset[str] = frozenset()
    _by_id: dict[int, Action] = field(default_factory=dict)
    _parts: dict[int, list[Action]] = field(default_factory=dict)
    _changed: bool = False
    _entries: list[EntryRow] = field(default_factory=list)
    _updates: list[_Update] = field(default_factory=list)
    _first_seq: int = 0
    _finished: RunState | None = None
    _closed_by: Actor = entries.PLANNER

    # --- Reading -------------------------------------------------------------------------------------------

    @property
    def definition(self) -> Definition:
        """The definition that the run pins."""
        return definition_by_id(self.run.definition_id)

    def contract(self, row: Action | Compensation) -> Contract:
        """The contract that the row pins."""
        return contract_by_id(row.contract_id)

    def tool(self, name: str) -> tuple[int, Contract]:
        """The contract version that the run's definition pins for another tool."""
        return pinned(self.run.definition_id, name)

    def facts(self) -> RunFacts:
        """The picture as it stands now, moves of this transaction included."""
        return run_facts(
            self.run,
            self.actions,
            self.compensations.values(),
            self.handoffs,
            self.freezes,
            self.now,
            self.permits,
            self.proposals,
            whole=self.whole,
        )

    def read_on(self) -> None:
        """Put the next rows of a large run on the desk, and all of them once there are no next ones."""
        self._take(window.further(self.run, [row.pk for row in self.actions]))

    def read_all(self) -> None:
        """Put every row of the run on the desk: for its end, for a person, and for whatever looks back."""
        if not self.whole:
            self._take(window.everything(self.run))

    def _take(self, rows: window.Rows) -> None:
        """Rows that are on the desk already stay as they are, moves of this transaction included."""
        known = {row.pk for row in self.actions}
        self.actions += [row for row in rows.actions if row.pk not in known]
        self.actions.sort(key=lambda row: (row.position, row.pk))
        for compensation in rows.compensations:
            self.compensations.setdefault(compensation.action_id, compensation)
        signed = {row.pk for row in self.permits}
        self.permits += [row for row in rows.permits if row.pk not in signed]
        self.permits.sort(key=lambda row: row.pk)
        self.whole = rows.whole

    def action(self, action_id: int) -> Action:
        """An action of this run by id. Raises `NotFound`."""
        self._index()
        found = self._by_id.get(action_id)
        if found is None and not self.whole:
            self.read_all()
            return self.action(action_id)
        if found is None:
            raise NotFound("action", str(action_id))
        return found

    def items(self, action: Action) -> list[Action]:
        """The items of a call over many, in their order; empty for a plain call."""
        self._index()
        return list(self._parts.get(action.pk, ()))

    def _index(self) -> None:
        """Actions come to the desk and none leaves it, so that their number tells whether all are in the index."""
        if len(self._by_id) == len(self.actions):
            return
        self._by_id, self._parts = {}, defaultdict(list)
        for row in self.actions:
            self._by_id[row.pk] = row
            if row.parent_id is not None:
                self._parts[row.parent_id].append(row)

    @property
    def handoff(self) -> Handoff | None:
        """The open handoff, if a person has the run."""
        for row in self.handoffs:
            if row.state != HandoffState.RESOLVED and not row.linked:
                return row
        return None

    @property
    def linked_handoff(self) -> Handoff | None:
        """The open handoff that stands beside a final run."""
        for row in self.handoffs:
            if row.state != HandoffState.RESOLVED and row.linked:
                return row
        return None

    @property
    def proposal(self) -> Proposal | None:
        """The verdict of one person that waits for a second one."""
        return next((row for row in self.proposals if row.state == ProposalState.OPEN), None)

    def scope(self, action: Action, *templates: Json) -> dict[str, Json]:
        """What bindings of this action may read (tools.bindings); of other steps, what these templates name."""
        if action.parent_id is not None:
            whole = self.scope(self.action(action.parent_id), *templates)
            own = {"item": self._part(action), "result": action.result, "prior": action.prior_state}
            if self.definition.step(action.step).each is not None:
                own["args"] = action.args  # a call of its own; the part of a call over many has none
            return {**whole, **own, "key": action.key, "forward_key": action.key}
        return {
            "input": self.run.input,
            "args": action.args,
            "result": action.result,
            "prior": action.prior_state,
            "key": action.key,
            "forward_key": action.key,
            "run": {"ref": self.run.ref, "business_ref": self.run.business_ref},
            **self._values(window.steps_named(templates)),
        }

    def _values(self, steps: set[str]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for row in self.actions if steps else ():
            if row.step in steps and row.state != ActionState.SUPERSEDED and not row.item:
                found |= window.values_of(row.step, row.result, row.args, row.prior_state)
        unread = {step for step in steps if f"steps.{step}.result" not in found}
        return found if self.whole or not unread else {**window.values(self.run, unread), **found}

    def _part(self, item: Action) -> Json:
        """What an item stands for: its part of the call over many, or its element of the list of a loop."""
        step = self.definition.step(item.step)
        if step.each is None or item.parent_id is None:
            return item.args
        listed = bind(step.each, self.scope(self.action(item.parent_id), step.each))
        return listed[int(item.item) - 1]

    # --- Writing -------------------------------------------------------------------------------------------

    def move(
        self,
        row: Row,
        verb: str,
        target: str,
        *,
        actor: Actor,
        reason: str = "",
        after: Json = None,
        **changes: Any,
    ) -> None:
        """Move a row to another state and say so. Raises `IllegalMove` if the tables do not allow it."""
        machine = _MACHINE[type(row)]
        try:
            rule = move(machine, verb, row.state, target)
        except KeyError as error:
            raise IllegalMove(str(error)) from None
        faultpoints.moved(machine.value, verb, run=self.run.ref, tool=getattr(row, "tool", ""))
        source, seen = row.state, row.version
        row.state, row.version = target, seen + 1
        for name, value in changes.items():
            setattr(row, name, value)
        self.say(
            rule.entry,
            actor=actor,
            reason=reason,
            after=after,
            machine=machine.value,
            object_id=row.pk,
            object_version=row.version,
            step=self._step_of(row),
            source=source,
            target=target,
        )
        self._updates.append((row, {"state": target, "version": row.version, **changes}, seen))

    def set(self, row: Row, **changes: Any) -> None:
        """Change columns of a row without moving it; leaves no entry of its own."""
        for name, value in changes.items():
            setattr(row, name, value)
        self._updates.append((row, changes, row.version))

    def say(
        self, name: str, *, actor: Actor | None = None, reason: str = "", aside: bool = False, **parts: Any
    ) -> None:
        """Leave an entry. The author's reason, command and version seen stand for what is not given.

        The code of the author's reason stands beside that very reason, and beside no other.

        `aside`: it changes nothing that a decision rests on (a query without an answer, a comment, a refusal), so
        that a page read before it stays good.
        """
        author = self.author
        own = author is not None and reason in ("", author.reason)
        self._changed = self._changed or not aside
        self.run.seq += 1
        self._entries.append(
            EntryRow(
                name=name,
                actor=author.actor if author and actor is None else (actor or entries.PLANNER),
                run_id=self.run.pk,
                run_ref=self.run.ref,
                seq=self.run.seq,
                reason=reason or (author.reason if author else ""),
                reason_code=author.reason_code if author and own else "",
                command_id=author.command_id if author else "",
                saw_version=author.saw_version if author else None,
                **parts,
            )
        )

    def withdraw_permits(self, action: Action | None = None, *, actor: Actor) -> None:
        """What is asked to be signed for this action, or for any, is void: its call does not go out any more."""
        for permit in self.permits:
            if action is not None and permit.action_id != action.pk:
                continue
            if permit.state in (PermitState.REQUESTED, PermitState.GRANTED):
                verb = "decide" if permit.state == PermitState.REQUESTED else "lapse"
                self.move(permit, verb, PermitState.WITHDRAWN, actor=actor, after={"ref": permit.ref})

    def finish(self, state: RunState, *, actor: Actor = entries.PLANNER) -> None:
        """Set the run's end state; registered compensations are voided, what never started is skipped."""
        self.read_all()
        for row in self.actions:
            if row.state in (ActionState.NOT_STARTED, ActionState.PREPARED):
                self.move(row, "skip", ActionState.SKIPPED, actor=actor)
        for compensation in self.compensations.values():
            if compensation.state in (CompensationState.REGISTERED, CompensationState.DUE):
                self.move(compensation, "void", CompensationState.VOIDED, actor=actor)
        self.withdraw_permits(actor=actor)
        self._finished, self._closed_by = state, actor
        faultpoints.mark("finish", run=self.run.ref)

    def hand_over(
        self,
        reason: Reason,
        *,
        action: Action | None,
        detail: str = "",
        actor: Actor,
        linked: bool = False,
        goes_on_from: str = "",
    ) -> Handoff:
        """Open the handoff of this run, with its structured context (S0-44), or add a question to the open one.

        `linked`: the run is final and stays so; the handoff stands beside it (law 9). `goes_on_from` is the closed
        handoff that a person reopens by it.
        """
        params: dict[str, Json] = {
            "step": action.step if action else "",
            "tool": self._tool_meant(reason, action),
            "cause": next((row.tool for row in self.actions if row.state == ActionState.REJECTED), ""),
            "detail": detail[:500],
            **({"goes_on_from": goes_on_from} if goes_on_from else {}),
        }
        handoff = self.linked_handoff if linked else self.handoff
        if handoff is None:
            self.read_all()
        faultpoints.mark("handoff", run=self.run.ref, tool=params["tool"])
        if handoff is None:
            # An earlier handoff may have been resolved in this very transaction: only one is ever open.
            self._write_rows()
            minutes = self.definition.deadlines.get(reason, self.definition.deadlines.get("default", 60.0))
            plan = schedule(team_named(self.run.team), float(minutes), self.now)
            handoff = None if linked else self._tried_again(params)
        if handoff is not None and handoff.state == HandoffState.RESOLVED:
            self.set(
                handoff,
                reason=reason.value,
                params=params,
                due_at=plan.due_at,
                schedule=plan.document(),
                alert_at=next_alert(plan, level=handoff.escalation, reminded=False),
                reminded_at=None,
                resolved_at=None,
                resolution="",
            )
            after = {"ref": handoff.ref, "reason": reason.value, "due": plan.document()}
            self.move(handoff, "reopen", HandoffState.OPEN, actor=actor, reason=detail, after=after)
            self.set(handoff, context=summary.context(self.facts(), reason))
        elif handoff is None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT nextval(pg_get_serial_sequence('sagas_handoff', 'id'))")
                (pk,) = cursor.fetchone()
            handoff = Handoff(
                pk=pk,
                run=self.run,
                ref=f"HF-{2000 + pk}",
                reason=reason.value,
                linked=linked,
                params=params,
                opened_at=self.now,
                due_at=plan.due_at,
                schedule=plan.document(),
                alert_at=next_alert(plan, level=0, reminded=False),
            )
            handoff.context = summary.context(self.facts(), reason)
            self.say(
                "human.handoff.started",
                actor=actor,
                reason=detail,
                machine=Machine.HANDOFF.value,
                object_id=pk,
                object_version=1,
                step=params["step"],
                target=HandoffState.OPEN.value,
                after={"ref": handoff.ref, "reason": reason.value, "due": plan.document(), **handoff.context},
            )
            handoff.save(force_insert=True)
            self.handoffs.append(handoff)
        if action is not None:
            Question.objects.create(handoff=handoff, action=action, code=reason.value, params=params)
        return handoff

    def _tool_meant(self, reason: Reason, action: Action | None) -> str:
        """The tool that a reason speaks of: the action's, unless the one that would make up for it is gone."""
        made_up = self.compensations.get(action.pk) if action is not None else None
        if (
            reason is Reason.TOOL_WITHDRAWN
            and made_up is not None
            and made_up.state == CompensationState.FAILED
        ):
            return made_up.tool
        return action.tool if action else ""

    def _tried_again(self, params: dict[str, Json]) -> Handoff | None:
        """The handoff that a person left by having the very step tried again: it goes on, with a growing history."""
        last = next((row for row in reversed(self.handoffs) if not row.linked), None)
        if last is None or last.state != HandoffState.RESOLVED or not params["step"]:
            return None
        same = last.params.get("step") == params["step"]
        return last if same and last.resolution.startswith(TRIED_AGAIN) else None

    def close_handoff(self, resolution: str, *, actor: Actor, reason: str = "") -> None:
        """Resolve the open handoff, or the one beside a final run, if any; its questions are settled with it."""
        handoff = self.handoff or self.linked_handoff
        if handoff is None:
            return
        Question.objects.filter(handoff=handoff, settled_at=None).update(settled_at=self.now)
        run = self.run
        run.quarantined_at, run.stuck_at, run.breaks, run.deaths = None, "", 0, 0
        self.move(
            handoff,
            "resolve",
            HandoffState.RESOLVED,
            actor=actor,
            reason=reason,
            after={"ref": handoff.ref, "resolution": resolution},
            resolved_at=self.now,
            resolution=resolution,
            alert_at=None,
            unknowns=0,
            compensation_failed=False,
            claimed_by="",
            claimed_by_name="",
            claimed_at=None,
            claim_until=None,
        )

    def close(self, *, release: bool) -> None:
        """Derive the run's state, refresh the queue's row and write: entries, rows, run, outbox."""
        run, before = self.run, RunState(self.run.state)
        if self._finished is not None:
            self.close_handoff(self._finished.value, actor=self._closed_by)
        self._drop_proposal()
        target = self._finished or planner.state_of(self.facts())
        changes: dict[str, Any] = {}
        if self._changed or target != before:
            run.version = self.seen_version + 1
            changes |= {"version": run.version, "changed_at": self.now}
            run.changed_at = self.now
        if target != before:
            self._enter(before, target)
        run.state = target.value
        if self.whole:
            run.effects_left = [action.step for action in planner.effects_left(self.facts())]
        if target in FINAL_RUN_STATES and run.finished_at is None:
            run.finished_at = self.now
        if release:
            run.owner, run.due_at, run.held = "", self.due_at, self.held
            run.held_by = self.held_by if self.held else None
        run.lane = self._lane()
        self._refresh_handoffs()
        self._flush(changes)

    def _drop_proposal(self) -> None:
        """A verdict that waits is over when its time is, and void when the facts that it was given on have changed."""
        row = self.proposal
        if row is None:
            return
        self.read_all()
        after: Json = {"ref": row.ref, "verb": row.verb}
        if row.expires_at <= self.now:
            self.move(row, "lapse", ProposalState.EXPIRED, actor=entries.PLANNER, after=after)
        elif row.handoff_id not in {one.pk for one in (self.handoff, self.linked_handoff) if one} or (
            row.basis != basis(self.facts())
        ):
            self.move(row, "void", ProposalState.VOID, actor=entries.VALIDATOR, after=after)

    def _lane(self) -> Lane:
        """What the run is due for next, for whoever claims it."""
        if self.run.deaths >= SUSPECT_AFTER:
            return Lane.ALONE
        if self.slow:
            return Lane.SLOW
        if self.author is not None and self.author.actor.kind is ActorKind.HUMAN:
            return Lane.COMMAND
        if self.run.direction == Direction.UNDO:
            return Lane.COMPENSATION
        return Lane.AGAIN if self.run.deliveries else Lane.NEW

    def _enter(self, before: RunState, target: RunState) -> None:
        try:
            verb = run_verb(before, target)
        except KeyError as error:
            raise IllegalMove(str(error)) from None
        final = target in FINAL_RUN_STATES
        left = [action.step for action in planner.effects_left(self.facts())] if final else []
        self.say(
            move(Machine.RUN, verb, before, target).entry,
            actor=self._closed_by,
            machine=Machine.RUN.value,
            object_id=self.run.pk,
            object_version=self.run.version,
            source=before.value,
            target=target.value,
            after={"effects_left": left} if final else None,
        )

    def _refresh_handoffs(self) -> None:
        if not self._changed or not self.handoffs:
            return
        over = self._finished or self.run.finished_at
        row = self.handoff or self.linked_handoff or (self.handoffs[-1] if over else None)
        if row is None:
            return
        self.read_all()
        changes = summary.columns(self.facts())
        for name, value in changes.items():
            setattr(row, name, value)
        self._updates.append((row, {**changes, "changed_xid": this_transaction()}, row.version))

    def _flush(self, changes: dict[str, Any]) -> None:
        run = self.run
        changes |= {
            "state": run.state,
            "direction": run.direction,
            "owner": run.owner,
            "fence": run.fence,
            "due_at": run.due_at,
            "held": run.held,
            "seq": run.seq,
            "confirmations": run.confirmations,
            "evidence_seen": run.evidence_seen,
            "evidence_waiting": run.evidence_waiting,
            "compensate_down_to": run.compensate_down_to,
            "turned_back_by": run.turned_back_by,
            "turned_back_at": run.turned_back_at,
            "paused_by": run.paused_by,
            "paused_at": run.paused_at,
            "effects_left": run.effects_left,
            "deliveries": run.deliveries,
            "lane": run.lane,
            "held_by": run.held_by,
            "stuck_at": run.stuck_at,
            "breaks": run.breaks,
            "deaths": run.deaths,
            "quarantined_at": run.quarantined_at,
            "finished_at": run.finished_at,
        }
        written = [update(Run, changes, "id = %s AND version = %s", [run.pk, self.seen_version])]
        if run.seq > self._first_seq:
            written.append(
                insert(Outbox, {"run_id": run.pk, "seq_from": self._first_seq + 1, "seq_to": run.seq})
            )
        own, *_ = self._write_rows(*written)
        if own.count != 1:
            raise ClaimLost(f"{run.ref} changed under its own lock")
        faultpoints.reach("desk.fetched", run=run.ref)

    def _write_rows(self, *then: Statement) -> list[Sent]:
        """Write entries, then the rows that they speak of: the guard asks for the entry when a row changes.

        Then `then`, in the same trip; returns what became of it.
        """
        said = [Statement(*one) for one in entries.statements(self._entries)]
        moved = list(_alike(self._updates))
        changed = [
            update(
                type(alike[0]), columns, "id = ANY(%s) AND version = %s", [[row.pk for row in alike], version]
            )
            for alike, columns, version in moved
        ]
        sent = send(*said, *changed, *then)[len(said) :]
        for (alike, _, _), one in zip(moved, sent, strict=False):
            if one.count != len(alike):
                raise ClaimLost(f"{alike[0]} changed under the run's lock")
        self._entries.clear()
        self._updates.clear()
        return sent[len(moved) :]

    def _step_of(self, row: Row) -> str:
        match row:
            case Action():
                return row.step if not row.item else f"{row.step}[{row.item}]"
            case Compensation() | Permit():
                return self._step_of(self.action(row.action_id))
            case Proposal():
                return row.step
            case _:
                return ""


def basis(facts: RunFacts) -> str:
    """What stands for the facts that a verdict is given on: it differs once any action or compensation has moved."""
    seen = [
        [unit.id, unit.version, unit.compensation.version if unit.compensation else 0]
        for unit in planner.units(facts)
    ]
    return fingerprint([facts.handoff.id if facts.handoff else 0, facts.direction.value, seen])


type _Update = tuple[Any, dict[str, Any], int]


def _alike(updates: list[_Update]) -> Iterator[tuple[list[Any], dict[str, Any], int]]:
    """Updates in their order, neighbours that write the same to different rows of a kind as one statement."""
    rows: dict[int, Any] = {}
    for number, (row, columns, version) in enumerate(updates):
        rows[row.pk] = row
        following = updates[number + 1] if number + 1 < len(updates) else None
        alike = (
            following is not None
            and type(following[0]) is type(row)
            and following[1:] == (columns, version)
            and following[0].pk not in rows
        )
        if not alike:
            yield list(rows.values()), columns, version
            rows = {}


def this_transaction() -> int:
    """The number of this transaction, by which a page tells what it could not see yet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        return int(cursor.fetchone()[0])


type InForce = tuple[datetime, tuple[FreezeFacts, ...], frozenset[str], dict[tuple[str, int], str]]
"""Now, the freezes in force, the tools whose gate is not simply open, and the contracts withdrawn with the reason."""

IN_FORCE = Statement(
    "SELECT now_(), f.id, f.scope, f.applies_to, f.reason, f.frozen_by_name, f.frozen_at, "
    "ARRAY(SELECT tool FROM sagas_gate WHERE paused_at IS NOT NULL OR pace IS NOT NULL), "
    "(SELECT jsonb_agg(jsonb_build_array(r.name, r.version, r.reason)) FROM sagas_retirement r "
    "WHERE r.kind = 'contract' AND r.withdrawn AND r.lifted_at IS NULL)::text, "
    "f.lift_asked_by, f.lift_asked_by_name, f.lift_asked_at, f.lift_reason "
    "FROM (SELECT 1) one LEFT JOIN sagas_freeze f ON f.lifted_at IS NULL ORDER BY f.id"
)


def in_force() -> InForce:
    """What is in force for every run, now."""
    (sent,) = send(IN_FORCE)
    return read_in_force(sent)


def read_in_force(sent: Sent) -> InForce:
    """What came of `IN_FORCE`, sent together with other statements."""
    rows = sent.rows
    freezes = tuple(
        FreezeFacts(
            id=row[1],
            scope=row[2],
            applies_to=row[3],
            reason=row[4],
            by=row[5],
            at=row[6],
            lift_asked_by=row[9],
            lift_asked_by_name=row[10],
            lift_asked_at=row[11],
            lift_reason=row[12],
        )
        for row in rows
        if row[1] is not None
    )
    withdrawn = {(name, version): reason for name, version, reason in json.loads(rows[0][8] or "[]")}
    return rows[0][0], freezes, frozenset(rows[0][7]), withdrawn


def load(run: Run, *, author: Author | None = None, whole: bool = True) -> Desk:
    """A run whose lock is held with all of its rows, or with those that the next decision needs."""
    whole = whole or window.is_small(run)
    standing, handed_over, *rows = send(
        IN_FORCE,
        select(Handoff, "WHERE run_id = %s ORDER BY id", [run.pk]),
        *(window.of_all(run) if whole else ()),
    )
    now, freezes, gated, withdrawn = read_in_force(standing)
    found = window.everything(run, rows) if whole else window.for_decision(run)
    compensations = {row.action_id: row for row in found.compensations}
    handoffs = as_rows(Handoff, handed_over)
    desk = Desk(
        run, found.actions, compensations, handoffs, found.permits, freezes, now, author, whole=found.whole
    )
    if any(row.state != HandoffState.RESOLVED for row in handoffs):
        desk.proposals = list(Proposal.objects.filter(run=run, state=ProposalState.OPEN))
    desk.seen_version, desk._first_seq, desk.gated = run.version, run.seq, gated
    desk.withdrawn = withdrawn
    return desk


@contextmanager
def opened(run_id: int, *, author: Author | None = None, whole: bool = True) -> Iterator[Desk]:
    """Lock freeze and run, in this order, and load the rest (engine.md, section 1). The caller closes the desk.

    `whole` False: only what the next decision needs. Raises `NotFound`.
    """
    _, locked = send(FREEZE_SHARED, select(Run, "WHERE id = %s FOR NO KEY UPDATE", [run_id]))
    if not locked.rows:
        raise NotFound("run", str(run_id))
    (run,) = as_rows(Run, locked)
    yield load(run, author=author, whole=whole)
