"""The door of the engine: everything that the people side may call, and nothing else.

Reads return frozen facts. Writes run in the caller's one durable transaction (`transaction`), through a desk that
holds the run's lock, except `start_run` and publishing, which are transactions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from sagas import catalogue, faultpoints, lately, planner, published, queries, vitals
from sagas import entries as _entries
from sagas import freezes as _freezes
from sagas import queue as _queue
from sagas.alarms import Alarm, in_force
from sagas.dryruns import dry_runs
from sagas.entries import EntryRow
from sagas.errors import NotFound
from sagas.escalation import Team
from sagas.facts import (
    Actor,
    FreezeFacts,
    PreviewFacts,
    RunFacts,
    TeamQueue,
    WaiverFacts,
)
from sagas.freezes import ask_to_lift, freeze, is_place, keep_frozen, unfreeze
from sagas.gates import gates, open_gate
from sagas.health import Health, broker_policy, health, owns_tables
from sagas.inbox import Callback, Received, receive
from sagas.leaving import can_be_left_out
from sagas.ledger import approvals, proposals
from sagas.ledger.desk import Author, opened
from sagas.ledger.start import run_ref, start_run, start_steps
from sagas.ledger.verbs import CommandDesk as Desk
from sagas.looks import look, look_plan, look_signoff
from sagas.many import arrived, likenesses, standings
from sagas.models import Handoff
from sagas.obstacles import HIGHEST_ESCALATION, obstacle, targets
from sagas.previews import preview, preview_of_edit, signed_call
from sagas.published import (
    check_definition,
    newest_contract,
    store_contract,
    store_definition,
    waivers_of,
)
from sagas.reasons import Reason
from sagas.relay import Parked, parked, redeliver, ring
from sagas.retirement import (
    needs_of_contract,
    needs_of_workflow,
    reinstate,
    retire_contract,
    retire_workflow,
    retirements,
)
from sagas.states import FINAL_RUN_STATES, ActionState, RunState
from sagas.summary import arguments, counts, done, elements, level, mark_word, question, strip, trouble
from sagas.teamfile import read_team, team_from_document
from sagas.teams import queues, store_team
from sagas.tx import durable as transaction
from sagas.tx import lock_freeze, retrying
from tools import lint
from tools.contract import Contract, Json
from tools.definition import Definition

__all__ = [
    "HIGHEST_ESCALATION",
    "REPLANS",
    "Alarm",
    "Callback",
    "Desk",
    "Health",
    "Parked",
    "Reason",
    "Received",
    "Team",
    "alarms",
    "arguments",
    "arrived",
    "ask_to_lift",
    "asked",
    "broker_policy",
    "broker_seen",
    "calls_lately",
    "can_be_left_out",
    "check_definition",
    "compensation_order",
    "counts",
    "database_seen",
    "desk",
    "done",
    "dry_runs",
    "elements",
    "entries",
    "freeze",
    "freeze_on",
    "freeze_reach",
    "freezes",
    "gates",
    "handoff_facts",
    "handoff_stamp",
    "health",
    "hold_freezes",
    "is_place",
    "keep_frozen",
    "level",
    "likenesses",
    "log",
    "look",
    "look_plan",
    "look_signoff",
    "mark_word",
    "needs_of_contract",
    "needs_of_workflow",
    "newest_contract",
    "next_allowed",
    "now",
    "obstacle",
    "open_gate",
    "outbox_seen",
    "outstanding",
    "owns_tables",
    "parked",
    "preview",
    "preview_with",
    "publish_contract",
    "publish_definition",
    "publish_team",
    "question",
    "queue",
    "queue_at_stake",
    "queue_changes",
    "queue_choices",
    "queue_closings",
    "queue_count",
    "queue_counts",
    "queue_rows",
    "queue_watched",
    "read_team",
    "receive",
    "reconciliation_seen",
    "record_replan",
    "redeliver",
    "reinstate",
    "retire_contract",
    "retire_workflow",
    "retirements",
    "retrying",
    "ring",
    "run_desk",
    "run_facts",
    "run_ref",
    "run_stamp",
    "runs",
    "runs_lately",
    "signed_call",
    "signoff_desk",
    "signoff_facts",
    "signoffs",
    "signoffs_open",
    "standing_still",
    "standings",
    "start_run",
    "start_steps",
    "strip",
    "systems_lately",
    "targets",
    "team_from_document",
    "team_queues",
    "tool",
    "tool_versions",
    "tools",
    "trail_of",
    "transaction",
    "trouble",
    "unfreeze",
    "unknown_steps",
    "users_of",
    "void_permits_of",
    "void_proposals_of",
    "waiting",
    "waivers",
    "word_for_agent",
    "workers_seen",
    "workflow",
    "workflow_versions",
    "workflows",
]

queue = _queue.page
queue_rows = _queue.rows_of
queue_counts = _queue.counts
queue_count = _queue.count
queue_choices = _queue.choices
queue_changes = _queue.changes
queue_closings = _queue.closings
queue_at_stake = _queue.at_stake
queue_watched = _queue.watched
alarms = in_force
run_facts = queries.facts_of_run
signoffs, signoffs_open = queries.signoffs, queries.signoffs_open
signoff_facts = queries.facts_of_permit
handoff_facts = queries.facts_of_handoff
handoff_stamp = queries.stamp_of_handoff
run_stamp = queries.stamp_of_run
now, runs, entries = queries.now, queries.runs, queries.entries
trail_of = queries.trail_of
workflows, workflow = catalogue.workflows, catalogue.workflow
workflow_versions = catalogue.workflow_versions
tools, tool, tool_versions = catalogue.tools, catalogue.tool, catalogue.tool_versions
users_of = catalogue.users_of
runs_lately = lately.runs_of
calls_lately = lately.calls_of
systems_lately = lately.systems
workers_seen, waiting = vitals.workers_seen, vitals.waiting
broker_seen, outbox_seen = vitals.broker_seen, vitals.outbox_seen
unknown_steps, outstanding = vitals.unknown_steps, vitals.outstanding
reconciliation_seen, database_seen = vitals.reconciliation_seen, vitals.database_seen
standing_still = vitals.standing_still


asked = planner.asked
compensation_order = planner.compensation_order
freeze_on = planner.freeze_on
freeze_reach, hold_freezes = _freezes.reach, lock_freeze


def freezes() -> tuple[FreezeFacts, ...]:
    """The freezes in force."""
    return queries.freezes()


@contextmanager
def desk(
    handoff_ref: str,
    *,
    actor: Actor,
    command_id: str = "",
    reason: str = "",
    reason_code: str = "",
    saw_version: int | None = None,
) -> Iterator[Desk]:
    """The run of a handoff under its lock, inside `transaction()`. Leaving it writes all moves at once.

    Raises `NotFound`; a verb that is not allowed raises `NotAllowed`, and then nothing is written.
    """
    run_id = Handoff.objects.filter(ref=handoff_ref).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotFound("handoff", handoff_ref)
    author = Author(
        actor=actor, reason=reason, reason_code=reason_code, command_id=command_id, saw_version=saw_version
    )
    with opened(run_id, author=author) as rows:
        yield Desk(rows, actor, about=handoff_ref)
        rows.close(release=False)


@contextmanager
def run_desk(
    run_ref: str,
    *,
    actor: Actor,
    command_id: str = "",
    reason: str = "",
    reason_code: str = "",
    saw_version: int | None = None,
) -> Iterator[Desk]:
    """A run under its lock, whether a person is asked about it or not; like `desk` otherwise."""
    run_id = queries.run_id_of(run_ref)
    author = Author(
        actor=actor, reason=reason, reason_code=reason_code, command_id=command_id, saw_version=saw_version
    )
    with opened(run_id, author=author) as rows:
        yield Desk(rows, actor)
        rows.close(release=False)


@contextmanager
def signoff_desk(
    permit_ref: str,
    *,
    actor: Actor,
    command_id: str = "",
    reason: str = "",
    reason_code: str = "",
    saw_version: int | None = None,
) -> Iterator[Desk]:
    """The run of a request for a signature under its lock, inside `transaction()`; like `desk` otherwise."""
    run_id = queries.run_id_of(queries.run_of_permit(permit_ref))
    author = Author(
        actor=actor, reason=reason, reason_code=reason_code, command_id=command_id, saw_version=saw_version
    )
    with opened(run_id, author=author) as rows:
        yield Desk(rows, actor)
        rows.close(release=False)


def void_permits_of(actor_id: str, *, actor: Actor, reason: str = "") -> tuple[str, ...]:
    """Make every unused signature of somebody void who may not sign any more (engine.md, section 8).

    Inside the transaction that takes the right away. Returns the runs concerned, for their bells after the commit;
    they ask for another signature by themselves.
    """
    return approvals.void_of(actor_id, actor=actor, reason=reason)


def void_proposals_of(actor_id: str, *, actor: Actor, reason: str = "") -> tuple[str, ...]:
    """Make void what somebody stated who may not decide any more and what waits for a second person; the same way."""
    return proposals.void_of(actor_id, actor=actor, reason=reason)


def preview_with(facts: RunFacts, verb: str, *, step: str, args: Json) -> PreviewFacts:
    """The preview of a verb that sends a step with other arguments; secrets that were left masked stay masked.

    Raises `NotAllowed` naming the fields that do not fit.
    """
    return preview_of_edit(queries.facts_of_run(facts.ref, unmasked=True), verb, step=step, args=args)


def log(
    *,
    name: str,
    actor: Actor,
    reason: str = "",
    reason_code: str = "",
    after: Json = None,
    command_id: str = "",
) -> None:
    """Leave an entry that belongs to no run: a login, a refusal without a case, a publication."""
    with connection.cursor() as cursor:
        row = EntryRow(
            name=name,
            actor=actor,
            reason=reason,
            reason_code=reason_code,
            after=after,
            command_id=command_id,
        )
        _entries.insert(cursor, [row])


def record_replan(
    run_ref: str, *, actor: Actor, kind: str, reason: str, step: str = "", evidence: str = ""
) -> None:
    """Record that a planner changed its way: replan, fallback, retry or handoff (S0-6). Changes nothing else.

    Raises `NotFound`, `ValueError` for another kind.
    """
    if kind not in REPLANS:
        raise ValueError(f"kind is one of {', '.join(REPLANS)}, not {kind!r}")
    with transaction(), opened(queries.run_id_of(run_ref), author=Author(actor=actor, reason=reason)) as rows:
        rows.say("run.replanned", actor=actor, step=step, after={"kind": kind, "evidence": evidence})
        rows.close(release=False)


REPLANS = ("replan", "fallback", "retry", "handoff")


def another_database() -> None:
    """Forget what this process remembers of published versions: another database stands behind it from now on.

    Only what starts databases of its own one after another needs it.
    """
    published.forget()
    catalogue.forget()


def publish_contract(contract: Contract, *, actor: Actor) -> bool:
    """Publish a contract; False when this very version was published before. Raises `AlreadyPublished`."""
    with transaction():
        faultpoints.mark("publish")
        new = store_contract(contract, by=actor.id)
        if new:
            # A signature was given under the rules that were the newest then: under these somebody signs again.
            reason = f"version {contract.version} of {contract.tool} was published"
            approvals.void_for_tool(contract.tool, actor=actor, reason=reason)
            log(
                name="contract.published",
                actor=actor,
                after={"tool": contract.tool, "version": contract.version, "digest": contract.digest},
            )
        return new


def publish_definition(definition: Definition, *, actor: Actor, waivers: Sequence[lint.Waiver] = ()) -> bool:
    """Publish a definition with the contracts it pins; False when published before. Raises `AlreadyPublished`.

    Raises `ErrorsFound` while the lint finds errors that `waivers` do not let pass, and `BadWaiver`.
    """
    with transaction():
        faultpoints.mark("publish")
        new = store_definition(definition, by=actor, waivers=waivers)
        if new:
            which = {"name": definition.name, "version": definition.version, "digest": definition.digest}
            log(name="definition.published", actor=actor, after=which)
            for waived in waivers_of(definition.name, definition.version):
                after = {**which, "code": waived.code, "steps": list(waived.steps)}
                log(name="definition.waived", actor=actor, reason=waived.reason, after=after)
        return new


def publish_team(team: Team, document: Json, *, actor: Actor) -> int:
    """Store a team's calendar and chain as its next version, which it returns; 0 when nothing is new.

    What is open already keeps its due time.
    """
    with transaction():
        version = store_team(team, document, by=actor.id)
        if version:
            after = {"team": team.name, "version": version, "digest": team.digest}
            log(name="team.published", actor=actor, after=after)
        return version


def team_queues() -> tuple[TeamQueue, ...]:
    """What waits for each team, the latest first, with whether anybody attends to it."""
    return queues()


def waivers(definition: Definition) -> tuple[WaiverFacts, ...]:
    """The errors that were let pass when this version was published, for screens. Raises `NotFound`."""
    return waivers_of(definition.name, definition.version)


def word_for_agent(facts: RunFacts) -> str:
    """The public workflow state: `partially_completed` where a mixed run waits or is with a person (S3-21, S3-22)."""
    settled = {action.state for action in planner.current(facts)}
    waiting = facts.state in (RunState.HANDOFF, RunState.RECOVERING)
    took_effect = bool(settled & {ActionState.CONFIRMED, ActionState.PARTIAL})
    if waiting and facts.direction.value == "forward" and took_effect and settled - {ActionState.CONFIRMED}:
        return "partially_completed"
    return facts.state.value


def next_allowed(facts: RunFacts) -> tuple[str, ...]:
    """What may be done next, by whoever has the right: an agent chooses among these and is checked again (law 11)."""
    if facts.state in FINAL_RUN_STATES:
        return ()
    if not planner.handoff_open(facts):
        stoppable = obstacle(facts, "stop_and_compensate") is None
        return ("wait", "stop_and_compensate") if stoppable else ("wait",)
    verbs = ("query_status", "retry", "compensate", "mark_acceptable", "resume", "escalate")
    allowed = []
    for verb in verbs:
        steps = targets(facts, verb) or ("",)
        if verb in ("query_status", "retry") and steps == ("",):
            continue
        if any(obstacle(facts, verb, step=step) is None for step in steps):
            allowed.append(verb)
    return (*allowed, "handoff")
