"""Frozen values that cross the engine's door: what is known of a run, in one consistent picture.

Built by `sagas.queries`, read by the planner, the commands and the screens. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sagas.states import ActionState, CompensationState, Direction, HandoffState, PermitState, RunState
from tools.contract import Contract, Json, Level
from tools.definition import Definition


class ActorKind(StrEnum):
    """Who acts: a person, an agent with a token, or the system itself."""

    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """The one who acts, as a value that outlives the account (S0-4). `role` is the acting role:
    planner, executor, tool, validator, human, compensation for the engine; the person's role otherwise.
    """

    kind: ActorKind
    id: str
    name: str
    role: str


@dataclass(frozen=True, kw_only=True)
class AttemptFacts:
    """One try over the wire. `answer` is a word of OutcomeKind; durations in milliseconds."""

    number: int
    sent_at: datetime
    finished_at: datetime | None
    answer: str
    error_class: str
    detail: str
    status: int | None
    duration_ms: int | None


@dataclass(frozen=True, kw_only=True)
class EvidenceFacts:
    """One piece of evidence, newest last; `source` is query, read, late, callback or person."""

    source: str
    verdict: str
    reference: str
    detail: str
    body: Json
    at: datetime
    by: str


@dataclass(frozen=True, kw_only=True)
class PermitFacts:
    """What was asked to be signed, and what became of it. `digest` covers `document`, the very call to be made.

    `requesters` are (id, name) of everybody who shaped the request: none of them may sign.
    """

    ref: str
    state: PermitState
    version: int
    digest: str
    document: Json
    requesters: tuple[tuple[str, str], ...]
    requested_at: datetime
    expires_at: datetime
    decided_by: str
    decided_by_name: str
    decided_at: datetime | None
    reason: str
    reason_code: str = ""


@dataclass(frozen=True, kw_only=True)
class CompensationFacts:
    """The registered compensation of an action. `args` None until bound by the commit that confirms."""

    id: int
    action_id: int
    key: str
    tool: str
    contract: Contract
    kind: str
    who: str
    ordered_by: str
    state: CompensationState
    version: int
    args: Json | None
    attempts_used: int
    registered_at: datetime
    sent_at: datetime | None
    settled_at: datetime | None
    due_at: datetime | None
    error_class: str
    error_detail: str
    result: Json | None
    provider_ref: str
    queries: int
    refusals: int = 0
    not_found_counts_at: datetime | None = None
    permit: PermitFacts | None = None
    unknown_since: datetime | None = None
    attempts: tuple[AttemptFacts, ...] = ()
    evidence: tuple[EvidenceFacts, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ActionFacts:
    """One action (a step's current or an older generation). `items` are its parts when it is a call over many;
    each part has a state, a key and a compensation of its own, and the state of the whole follows from theirs.
    `permit` is the newest signature asked for the forward call.
    """

    id: int
    step: str
    position: int
    item: str
    generation: int
    tool: str
    contract: Contract
    state: ActionState
    version: int
    key: str
    args: Json | None
    result: Json | None
    provider_ref: str
    attempts_used: int
    confirm_seq: int | None
    prior_state: Json | None
    prior_version: str
    prior_read_at: datetime | None
    sent_at: datetime | None
    settled_at: datetime | None
    settled_by: str
    due_at: datetime | None
    not_found_counts_at: datetime | None
    unknown_since: datetime | None
    queries: int
    error_class: str
    error_detail: str
    repeat_ordered: bool = False
    refusals: int = 0

    @property
    def let_be(self) -> bool:
        """Whether a person accepted it as it is though it never took effect: it had been refused before."""
        return self.state is ActionState.ACCEPTED and self.settled_at is not None and self.confirm_seq is None

    @property
    def settled_as(self) -> ActionState:
        """What conditions are held against: a call over many is confirmed only where none of it was let be."""
        some = self.state is ActionState.CONFIRMED and any(item.let_be for item in self.items)
        return ActionState.ACCEPTED if some else self.state

    why: str = ""
    evidence_note: str = ""
    compensation: CompensationFacts | None = None
    attempts: tuple[AttemptFacts, ...] = ()
    evidence: tuple[EvidenceFacts, ...] = ()
    items: tuple[ActionFacts, ...] = ()
    permit: PermitFacts | None = None


@dataclass(frozen=True, kw_only=True)
class HandoffFacts:
    """What a person is asked to settle. `reason` is a code of sagas.handoff.Reason; `params` fill its sentence.

    `schedule` is the stored document of sagas.escalation.Schedule: how `due_at` was computed, who is told when.
    `wanted_by` and its name: who asked whoever holds it now to hand it over, "" for nobody.
    """

    id: int
    ref: str
    state: HandoffState
    reason: str
    params: dict[str, Json]
    opened_at: datetime
    due_at: datetime
    escalation: int
    claimed_by: str
    claimed_by_name: str
    claimed_at: datetime | None
    claim_until: datetime | None
    resolved_at: datetime | None
    resolution: str
    linked: bool
    schedule: Mapping[str, Json] = field(default_factory=dict)
    reminded_at: datetime | None = None
    wanted_by: str = ""
    wanted_by_name: str = ""
    wanted_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ProposalFacts:
    """What one person stated, until a second person confirms it. `verb` is what it comes to.

    `shapers` are (id, name) of everybody who worked on the run before: none of them may confirm it.
    """

    ref: str
    handoff_id: int
    verb: str
    step: str
    reference: str
    end_state: str
    proposed_by: str
    proposed_by_name: str
    reason: str
    proposed_at: datetime
    expires_at: datetime
    shapers: tuple[tuple[str, str], ...]
    reason_code: str = ""


@dataclass(frozen=True, kw_only=True)
class WaiverFacts:
    """An error of the check that was let pass when a workflow was published: which, where, why, by whom, when."""

    code: str
    title: str
    steps: tuple[str, ...]
    reason: str
    by: str
    by_name: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Need:
    """A live run that needs a version: for which open steps, and for the compensations of which steps.

    Both may be empty: it pins the version all the same, for a query or a read.
    """

    run_ref: str
    state: str
    workflow: str
    workflow_version: int
    steps: tuple[str, ...]
    compensations: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RetirementFacts:
    """A version out of use; kind is contract or workflow. `withdrawn`: not called any more either."""

    kind: str
    name: str
    version: int
    withdrawn: bool
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class FreezeFacts:
    """A freeze in force. scope: forward | writes | everything; applies_to: all, tool:x, workflow:x, team:x."""

    id: int
    scope: str
    applies_to: str
    reason: str
    by: str
    at: datetime
    lift_asked_by: str = ""
    lift_asked_by_name: str = ""
    lift_asked_at: datetime | None = None
    lift_reason: str = ""


@dataclass(frozen=True, kw_only=True)
class FreezeReach:
    """What a freeze would stop just now: runs that are not at their end. Calls in flight it cannot stop any more."""

    runs: int
    in_flight: int


@dataclass(frozen=True, kw_only=True)
class GateFacts:
    """The gate of a tool: closed until a time, or paused until a person opens it; how fast it lets through.

    `per_second` and `at_once` None = no bound of that kind. `waiting` calls wait, the first since `waiting_since`.
    """

    tool: str
    closed_until: datetime | None
    paused_at: datetime | None
    paused_why: str
    per_second: float | None
    at_once: int | None
    waiting: int
    waiting_since: datetime | None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Everything known of one run at `now` (database clock). `version` rises with every change people can see.

    `parent_ref` is the run that this one is a remedy for, `remedies` are those started for this one. `starter` is the id
    of whoever started it; `turned_back_by` names the person, agent or system that began the compensation, `paused_by` the
    person who keeps the next one from beginning. `whole` False: of a large run only the actions that the next decision
    needs.
    """

    id: int
    ref: str
    state: RunState
    direction: Direction
    version: int
    fence: int
    owner: str
    definition: Definition
    definition_digest: str
    input: Json
    intent: str
    business_ref: str
    title: str
    customer: str
    amount: str
    currency: str
    team: str
    started_at: datetime
    started_by: str
    changed_at: datetime
    finished_at: datetime | None
    effects_left: tuple[str, ...]
    actions: tuple[ActionFacts, ...]
    handoff: HandoffFacts | None
    freezes: tuple[FreezeFacts, ...]
    now: datetime
    quarantined: bool = False
    handoffs: tuple[HandoffFacts, ...] = ()
    proposal: ProposalFacts | None = None
    starter: str = ""
    turned_back_by: str = ""
    turned_back_at: datetime | None = None
    paused_by: str = ""
    paused_at: datetime | None = None
    definition_id: int = 0
    parent_ref: str = ""
    remedies: tuple[str, ...] = ()
    whole: bool = True

    def action(self, step: str) -> ActionFacts:
        """The current generation of a step. Raises KeyError."""
        for action in reversed(self.actions):
            if action.step == step and action.state is not ActionState.SUPERSEDED:
                return action
        raise KeyError(step)


@dataclass(frozen=True, kw_only=True)
class EntryFacts:
    """One entry of the trail: event and audit record in one. `at` by the database clock."""

    id: int
    seq: int | None
    name: str
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    role: str
    reason: str
    step: str
    machine: str
    source: str
    target: str
    before: Json
    after: Json
    command_id: str
    saw_version: int | None
    reason_code: str = ""


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why a verb is not possible now. `code` is stable; `sentence` is for people, `params` its parts.

    `fields` are (place, what is wrong) of arguments that do not fit: `args/zip` is the member `zip` of `args`.
    """

    code: str
    sentence: str
    params: dict[str, Json] = field(default_factory=dict)
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class StripMark:
    """One mark of the step strip: the step's position, tool, word of its state (compensation states fold in:
    compensating, compensation_failed), and recovery class. `items`: how many of its parts have which word."""

    position: int
    step: str
    tool: str
    state: str
    recovery_class: str
    items: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The five counts of a case: ok, failed, unknown, irreversible, compensable."""

    ok: int
    failed: int
    unknown: int
    irreversible: int
    compensable: int


@dataclass(frozen=True, kw_only=True)
class QueueRow:
    """A handoff as the queue shows it, from one row of the database. `titles` has the title in other languages.

    `touches_money`, `touches_customer`: a call with an effect outside took effect, or may have, in a case that names an
    amount or a customer. `similar` is what it has in common with others (`sagas.summary.similar`). `wanted_by_name`: who
    asked whoever holds it now to hand it over.
    """

    id: int
    ref: str
    run_ref: str
    version: int
    state: str
    title: str
    business_ref: str
    customer: str
    amount: str
    currency: str
    workflow: str
    workflow_version: int
    reason: str
    params: dict[str, Json]
    level: str
    irreversible_confirmed: bool
    strip: tuple[StripMark, ...]
    counts: Counts
    due_at: datetime
    escalation: int
    claimed_by: str
    claimed_by_name: str
    claim_until: datetime | None
    titles: Mapping[str, str] = field(default_factory=dict)
    team: str = ""
    touches_money: bool = False
    touches_customer: bool = False
    similar: str = ""
    closed_at: datetime | None = None
    wanted_by_name: str = ""


@dataclass(frozen=True, kw_only=True)
class CaseStanding:
    """How the run of a handoff stands. `seq` rises with every entry; `with_person`: some handoff of it is open."""

    handoff_ref: str
    run_ref: str
    state: RunState
    version: int
    seq: int
    closed_at: datetime | None
    with_person: bool


@dataclass(frozen=True, kw_only=True)
class TeamQueue:
    """What waits for a team, and whether it is at work now. `zone` "" = around the clock; `calendar` 0 = undeclared.

    `unclaimed` counts the cases that nobody holds, `late` those past their time, `escalated` those above level 0.
    """

    team: str
    title: str
    zone: str
    calendar: int
    chain: tuple[str, ...]
    at_work: bool
    opens_at: datetime | None
    cases: int
    unclaimed: int
    late: int
    escalated: int
    first_due_at: datetime | None
    oldest_at: datetime | None

    @property
    def unattended(self) -> bool:
        """Whether cases are late and nobody holds any."""
        return self.late > 0 and self.unclaimed == self.cases


@dataclass(frozen=True, kw_only=True)
class QueueFilter:
    """Which handoffs are asked for; "" asks for nothing in particular.

    state: open | unknown | compensation_failed | signoff | closed | any. owner: me | nobody | a user name.
    `level` is the lowest. touched: money | customers. due: late | 1h | 8h | 24h. `similar` is the key of a group.
    """

    state: str = "open"
    search: str = ""
    workflow: str = ""
    tool: str = ""
    reason: str = ""
    level: str = ""
    owner: str = ""
    touched: str = ""
    due: str = ""
    similar: str = ""


@dataclass(frozen=True, kw_only=True)
class QueueGroup:
    """Open handoffs that are alike just now: a way to look at them, never one thing (`sagas.summary.similar`).

    `members` are (reference, version) in due order, `rows` the first of them where the group is unfolded. `count` may
    be larger than both.
    """

    key: str
    tool: str
    error_class: str
    state: str
    count: int
    first_due_at: datetime
    since: datetime
    members: tuple[tuple[str, int], ...]
    rows: tuple[QueueRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class QueuePage:
    """A page of the queue in due order. `after` is the key of the next page, "" at the end; `cursor` an opaque
    word for `queue_changes(since=...)`: what is committed after this page was read, and only that, is a change.
    With groups, a row whose `similar` is the key of one stands for all of its members.
    """

    rows: tuple[QueueRow, ...]
    after: str
    now: datetime
    cursor: str
    groups: tuple[QueueGroup, ...] = ()

    @property
    def refs(self) -> tuple[str, ...]:
        """Every handoff that is on the page, members of its groups included, in the order of the page."""
        found: list[str] = []
        groups = {group.key: group for group in self.groups}
        for row in self.rows:
            group = groups.get(row.similar)
            found += [ref for ref, _ in group.members] if group else [row.ref]
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class QueueChanges:
    """The handoffs that changed after a cursor, and the cursor to ask with next time."""

    refs: tuple[str, ...]
    cursor: str


@dataclass(frozen=True, kw_only=True)
class QueueChoices:
    """What the open handoffs can be told apart by: names, each of them there at least once. `owners` are (id, name)."""

    workflows: tuple[str, ...]
    reasons: tuple[str, ...]
    tools: tuple[str, ...]
    owners: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Closing:
    """Who closed a handoff, and when."""

    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class StepAccount:
    """An agent's own account of a step: why this tool, and what it saw before (S1-21). Never used to decide."""

    why: str = ""
    evidence: str = ""


@dataclass(frozen=True, kw_only=True)
class AdHocStep:
    """One step of a run without a published workflow. `args` may be bindings, as in a definition."""

    id: str
    tool: str
    args: Json
    why: str = ""
    evidence: str = ""
    on_rejected: str = ""


@dataclass(frozen=True, kw_only=True)
class Started:
    """The answer to a start: `created` False when the same start key had been stored before (S1-9)."""

    run_ref: str
    created: bool


@dataclass(frozen=True, kw_only=True)
class PlannedCall:
    """One call exactly as it will go out. `direction` is query, read, forward or compensation.

    `items` names the parts that a call over many carries; `end_state` the end state whose follow-up it is.
    """

    number: int
    step: str
    tool: str
    system: str
    direction: str
    line: str
    body: Json
    key: str
    changes_state: bool
    text: str
    items: tuple[str, ...] = ()
    end_state: str = ""


@dataclass(frozen=True, kw_only=True)
class PreviewFacts:
    """What a verb would do: calls in running order, what each answer leads to (codes), what cannot be taken back.

    `stays` are the effects that are left as they are, `never_sent` the steps that will not run any more; `args_before`
    and `args_after` the arguments of a step that is sent with others, masked. `needs_second`: it counts only once a
    second person has confirmed it.
    """

    verb: str
    step: str
    calls: tuple[PlannedCall, ...]
    outcomes: tuple[tuple[str, str], ...]
    irreversible: tuple[str, ...]
    needs_signoff: bool
    stays: tuple[str, ...] = ()
    never_sent: tuple[str, ...] = ()
    args_before: Json = None
    args_after: Json = None
    needs_second: bool = False


@dataclass(frozen=True, kw_only=True)
class ConditionCheck:
    """A condition of an end state, as read just now; `met` None when it could not be read."""

    text: str
    met: bool | None
    evidence: str
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class DryRunSeen:
    """What the provider's test mode said just now about the call of `step` with this key, without its effect.

    `offered` False: the tool has none. `accepted` None: nobody could tell; `detail` are the words that came back.
    """

    step: str
    tool: str
    key: str
    offered: bool
    accepted: bool | None
    detail: str
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class EndStateCheck:
    """An end state of the definition with its conditions; `met` only if every condition is met."""

    id: str
    title: str
    conditions: tuple[ConditionCheck, ...]
    met: bool


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What the evidence phase of a command found, outside any transaction.

    `verified`: a read proved (True) or disproved (False) the claim; None when there was no read or no answer.
    """

    verb: str
    step: str = ""
    verified: bool | None = None
    reference: str = ""
    detail: str = ""
    body: Json = None
    end_states: tuple[EndStateCheck, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run as a list shows it. `state` is the engine's word."""

    ref: str
    state: str
    version: int
    workflow: str
    workflow_version: int
    title: str
    business_ref: str
    started_by: str
    started_at: datetime
    changed_at: datetime
    finished_at: datetime | None
    handoff_ref: str
    effects_left: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """A page of runs, newest first. `after` is the key of the next page, "" at the end."""

    rows: tuple[RunRow, ...]
    after: str
    now: datetime


@dataclass(frozen=True, kw_only=True)
class SignoffRow:
    """A request for a signature as a list shows it, decided or not; `title` is that of the step's tool.
    `forward`: it is the step's own call that waits, not its compensation.
    """

    ref: str
    state: PermitState
    run_ref: str
    run_title: str
    business_ref: str
    step: str
    tool: str
    requesters: tuple[tuple[str, str], ...]
    requested_at: datetime
    expires_at: datetime
    decided_by_name: str
    decided_at: datetime | None
    reason: str
    title: str
    system: str
    level: Level
    amount: str
    currency: str
    asked_by: str
    asked_by_name: str
    why: str
    why_code: str = ""
    forward: bool = False


@dataclass(frozen=True, kw_only=True)
class SignoffFacts:
    """A request for a signature with the run and the action that it speaks of; secrets are masked.

    `unchanged`: what would be sent now is the very call of the permit's document. `asked_by` and its name are "" where
    the run itself asked; `why` is what was given as the reason, `why_code` its code. `level` is the highest of the
    contracts involved. `newest` is the newest request for the same call. `forward`: it is the step's own call, not its
    compensation.
    """

    run: RunFacts
    action: ActionFacts
    permit: PermitFacts
    unchanged: bool
    level: Level
    asked_by: str
    asked_by_name: str
    why: str
    newest: str
    why_code: str = ""
    forward: bool = False

    @property
    def compensation(self) -> CompensationFacts | None:
        """The compensation that is to be signed; None for a forward call."""
        return None if self.forward else self.action.compensation


@dataclass(frozen=True, kw_only=True)
class ChangeSeen:
    """A field that a compensation changes: as read just now, and as it has to read afterwards.

    `answered` False: nobody could tell what stands there now. `operator` is that of the condition checked afterwards.
    """

    record: str
    field: str
    now: Json
    after: Json
    operator: str
    answered: bool
    read_at: datetime


@dataclass(frozen=True, kw_only=True)
class SignoffLook:
    """What was read of the outside world for whoever is about to sign."""

    preconditions: tuple[ConditionCheck, ...] = ()
    changes: tuple[ChangeSeen, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanLook:
    """What was read of the outside world for one compensation of a plan. `read` False: there was no time for it."""

    step: str
    item: str
    read: bool
    preconditions: tuple[ConditionCheck, ...] = ()
    changes: tuple[ChangeSeen, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SignoffPage:
    """A page of requests: open ones by expiry, decided ones newest first. `after` "" at the end."""

    rows: tuple[SignoffRow, ...]
    after: str
    now: datetime
