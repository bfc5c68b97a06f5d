"""What people do to a run: each verb as moves on the desk. Who may do it was decided before.

A verb that the engine does not allow now raises `NotAllowed` and changes nothing. Commands raise the run's version;
they take no claim of a worker away.
"""

from __future__ import annotations

from datetime import timedelta

from sagas import summary
from sagas.edits import changed, edited
from sagas.errors import NotAllowed, NotFound
from sagas.facts import ActionFacts, Actor, Looked, Obstacle, RunFacts, SignoffFacts
from sagas.leaving import can_be_left_out, failed_compensations, refused_items, tried
from sagas.ledger import alerts, approvals, batch, claims, compensate, evidence, followups, proposals, settle
from sagas.ledger.advance import turn_back
from sagas.ledger.desk import TRIED_AGAIN, Desk, this_transaction
from sagas.ledger.evidence import Proof
from sagas.models import Action, Compensation, Handoff, Permit, Proposal
from sagas.obstacles import can_be_asked, obstacle
from sagas.picture import without_secrets
from sagas.planner import current, key_is_kept, to_compensate, units
from sagas.reasons import Reason
from sagas.states import ActionState, CompensationState, Direction, HandoffState, PermitState, RunState
from sagas.verdicts import needs_second
from tools.contract import Contract, ErrorClass, Json, Who
from tools.keys import forward_key
from tools.outcome import Verdict
from tools.pointers import parts
from tools.redact import mask

CLAIM_MINUTES = 20


class CommandDesk:
    """A run on a person's desk, inside the command's transaction."""

    def __init__(self, desk: Desk, actor: Actor, *, about: str = "") -> None:
        """`about`: the handoff by which the run was asked for."""
        self._desk = desk
        self._actor = actor
        self._about = about
        self._seconded: Proposal | None = None

    @property
    def facts(self) -> RunFacts:
        """The fresh facts, read under the run's lock; secrets are masked."""
        return without_secrets(self._desk.facts())

    # --- Who works on it ----------------------------------------------------------------------------------

    def claim(self, *, minutes: int = CLAIM_MINUTES) -> None:
        """Take the case, or renew the own claim; it lapses by the database's clock."""
        self._must("claim")
        desk, handoff, actor = self._desk, self._handoff(), self._actor
        until = desk.now + timedelta(minutes=minutes)
        if handoff.state == HandoffState.CLAIMED and handoff.claimed_by == actor.id:
            desk.set(handoff, claim_until=until)
            desk.say("human.handoff.claimed", actor=actor, aside=True, after={"until": until.isoformat()})
            return
        if claims.has_lapsed(desk, handoff):
            claims.let_go(desk, handoff)
        taking_over = handoff.state == HandoffState.CLAIMED
        desk.move(
            handoff,
            "take_over" if taking_over else "claim",
            HandoffState.CLAIMED,
            actor=actor,
            after={"until": until.isoformat(), "from": handoff.claimed_by_name},
            claimed_by=actor.id,
            claimed_by_name=actor.name,
            claimed_at=desk.now,
            claim_until=until,
        )

    def assign(self, *, to: str, name: str, minutes: int = CLAIM_MINUTES) -> None:
        """Hand the case over to somebody else, who holds it from now on; whoever held it lets go of it."""
        self._must("assign")
        desk, handoff = self._desk, self._handoff()
        until = desk.now + timedelta(minutes=minutes)
        desk.move(
            handoff,
            "assign",
            HandoffState.CLAIMED,
            actor=self._actor,
            after={"to": name, "from": handoff.claimed_by_name, "until": until.isoformat()},
            claimed_by=to,
            claimed_by_name=name,
            claimed_at=desk.now,
            claim_until=until,
        )

    def release(self) -> None:
        """Give the case back to the queue."""
        self._must("release")
        handoff = self._handoff()
        if handoff.state != HandoffState.CLAIMED:
            raise NotAllowed(Obstacle(code="not_claimed", sentence="Nobody has claimed this case."))
        self._desk.move(
            handoff,
            "release",
            HandoffState.OPEN,
            actor=self._actor,
            claimed_by="",
            claimed_by_name="",
            claimed_at=None,
            claim_until=None,
        )

    def ask_for_case(self, note: str) -> None:
        """Ask whoever holds the case to hand it over. Nothing changes hands by it."""
        self._must("ask_for_case")
        desk, handoff, actor = self._desk, self._handoff(), self._actor
        desk.set(
            handoff,
            wanted_by=actor.id,
            wanted_by_name=actor.name,
            wanted_at=desk.now,
            changed_xid=this_transaction(),
        )
        after = {"ref": handoff.ref, "of": handoff.claimed_by_name}
        desk.say("human.handoff.asked_for", aside=True, actor=actor, reason=note, after=after)

    def reopen(self) -> None:
        """Open a new case beside a final run, linked to the closed one that it goes on from.

        The run stays as it ended (law 9): what has to be put right is a run of its own.
        """
        self._must("reopen")
        self._desk.hand_over(
            Reason.REOPENED, action=None, actor=self._actor, linked=True, goes_on_from=self._about
        )

    def comment(self, text: str) -> None:
        """Leave a note for the next reader."""
        self._desk.say("human.handoff.commented", aside=True, actor=self._actor, reason=text)

    def escalate(self) -> None:
        """Raise the case by one level and hand it back to the queue, for somebody with more to say."""
        self._must("escalate")
        handoff = self._handoff()
        alerts.raise_level(self._desk, handoff, actor=self._actor)
        if handoff.state == HandoffState.CLAIMED:
            self.release()

    def refuse(self, verb: str, code: str, sentence: str, *, step: str = "") -> None:
        """Leave the entry of a refused command; nothing else changes, the version included."""
        self._desk.say(
            "command.refused",
            aside=True,
            actor=self._actor,
            step=step,
            after={"verb": verb, "code": code, "said": sentence},
        )

    # --- What is unknown ----------------------------------------------------------------------------------

    def query_status(self, step: str) -> None:
        """Have the tool asked now, "" about every unknown step that can be asked about; the answer comes later, and
        "accepted" is not "done".
        """
        self._must("query_status", step)
        for one in (step,) if step else can_be_asked(self.facts):
            rows = self._unknown_rows(one)
            for row in rows:
                self._desk.set(row, due_at=self._desk.now)
            self._note("query_status", rows[0])
        self._due_now()

    def resolve_happened(self, step: str, *, reference: str = "", looked: Looked | None = None) -> None:
        """A person's word that the call took effect, with a reference; a read that disproves it has refused it."""
        self._must("resolve_happened", step)
        if looked is not None and looked.verified is False:
            sentence = f"The reference {reference!r} could not be found: {looked.detail}"
            raise NotAllowed(Obstacle(code="disproved", sentence=sentence))
        row = self._unknown(step)
        action = self._action_of(row)
        proven = looked is not None and looked.verified is True
        if self._proposed("resolve_happened", step, {"reference": reference}, proven=proven):
            return
        self._prove(row, Verdict.FOUND, reference, looked)
        if isinstance(row, Compensation):
            compensate.compensated(
                self._desk,
                action,
                row,
                "find",
                f"{self._by}, reference {reference}",
                self._actor,
                reference=reference,
            )
        else:
            desk = self._desk
            settle.confirm(
                desk,
                action,
                verb="find",
                reference=reference,
                result=_result_named(desk.contract(action), reference, looked),
                by=self._by + (", read back" if looked and looked.verified else ""),
                actor=self._actor,
            )
        self._resume("a person found that it happened")

    def resolve_not_happened(self, step: str) -> None:
        """A person's word that the call never took effect; only after every limit has passed."""
        self._must("resolve_not_happened", step)
        row = self._unknown(step)
        if self._proposed("resolve_not_happened", step, {}):
            return
        self._prove(row, Verdict.DENIED, "", None)
        if isinstance(row, Compensation):
            self._desk.move(
                row,
                "absent",
                CompensationState.DUE,
                actor=self._actor,
                unknown_since=None,
                due_at=self._desk.now,
                ordered_by=self._actor.id,
            )
            self._resume("a person found that it did not happen")
            return
        settle.reject(
            self._desk,
            row,
            "deny",
            ErrorClass.NO_ANSWER,
            f"{self._by} found that it did not happen",
            self._actor,
        )
        self._due_now()

    # --- Two persons --------------------------------------------------------------------------------------

    def confirm_verdict(self, *, looked: Looked | None = None) -> None:
        """Stand to what another person stated: it counts now. `looked` is what was read for that verb just now.

        Raises `NotAllowed` for the first person, for whoever worked on the run before, and once facts have changed.
        """
        self._must("confirm_verdict")
        row = proposals.open_one(self._desk)
        proposals.confirm(self._desk, row, actor=self._actor)
        self._seconded = row
        match row.verb:
            case "resolve_happened":
                self.resolve_happened(row.step, reference=row.arguments["reference"], looked=looked)
            case "resolve_not_happened":
                self.resolve_not_happened(row.step)
            case "mark_acceptable":
                self.mark_acceptable(end_state=row.arguments["end_state"], looked=looked)
            case _:
                raise ValueError(row.verb)

    def decline_verdict(self) -> None:
        """Not stand to what another person stated, or take back what one stated oneself. Nothing is settled."""
        self._must("decline_verdict")
        proposals.decline(self._desk, proposals.open_one(self._desk), actor=self._actor)

    def _proposed(self, verb: str, step: str, arguments: dict[str, Json], *, proven: bool = False) -> bool:
        """True: the verdict takes a second person and is kept until then."""
        if self._seconded is not None or not needs_second(self._desk.facts(), verb, step=step, proven=proven):
            return False
        proposals.propose(self._desk, self._handoff(), verb, step, arguments, actor=self._actor)
        self._due_now()
        return True

    @property
    def _by(self) -> str:
        """Who stands to a verdict: one person, or two."""
        return self._actor.name if self._seconded is None else proposals.names(self._seconded, self._actor)

    # --- Forward ------------------------------------------------------------------------------------------

    def retry(self, step: str, *, items: tuple[str, ...] = ()) -> None:
        """Make the call again: the same key where it is still known or was never used, else a new generation.

        Of a call over many only refused items go out again: those named, or all of them.
        """
        self._must("retry", step)
        desk = self._desk
        action = self._current(step)
        contract = desk.contract(action)
        if action.state == ActionState.PARTIAL:
            self._retry_items(action, items)
            return
        if action.state == ActionState.UNKNOWN:
            # The tool keeps the key: the same call under it cannot take effect twice. It stays unknown until then.
            desk.set(action, due_at=desk.now, attempts_used=0, repeat_ordered=True)
            self._note("retry", action)
            self._resume("a person ordered a repeat under the same key")
            return
        if action.state == ActionState.PREPARED:
            # Nobody answered the request for a signature in time: whoever retries asks anew.
            approvals.ask(desk, action, None)
            self._note("retry", action)
            self._resume("a person asked for the signature again")
            return
        proven = action.sent_at is None or action.error_class in _NEVER_CARRIED_OUT
        kept = key_is_kept(
            desk.now, action.sent_at, contract.idempotency.support, contract.idempotency.retention_s
        )
        if proven or kept:
            desk.move(
                action,
                "retry",
                ActionState.PREPARED,
                actor=self._actor,
                after={"key": action.key, "generation": action.generation},
                attempts_used=0,
                refusals=0,
                due_at=desk.now,
                settled_at=None,
            )
            self._register_again(action)
            self._items_again(action, items)
            if desk.items(action) and contract.items is None:
                desk.move(
                    action, "send", ActionState.SENT, actor=self._actor, sent_at=desk.now
                )  # its items go out
        else:
            self._new_generation(action, args=action.args, verb="retry")
        self._resume(TRIED_AGAIN)

    def edit_and_retry(self, step: str, *, args: Json) -> None:
        """Make the call with other arguments: a new generation with a key of its own (law 10, S3-10).

        What is left at the mask keeps its stored value. Raises `NotAllowed` naming the fields that do not fit.
        """
        self._must("edit_and_retry", step)
        action = self._current(step)
        facts = self._unmasked(action)
        new = edited(facts, args)
        changed(facts, new)
        self._new_generation(action, args=new, verb="edit_and_retry")
        self._resume(f"{TRIED_AGAIN} with other arguments")

    def redo(self, step: str, *, args: Json = None) -> None:
        """Go forward again from the first step that was compensated: it and what came after it are made anew.

        New rows with keys of their own; what stands stays. `args` None: the step's arguments as they were.
        """
        self._must("redo", step)
        desk, first = self._desk, self._current(step)
        new = first.args if args is None else edited(self._unmasked(first), args)
        again = [
            row
            for row in desk.actions
            if row.parent_id is None and row.position >= first.position and row.state in _MADE_ANEW
        ]
        desk.run.direction = Direction.FORWARD.value
        desk.run.turned_back_by, desk.run.turned_back_at = "", None
        desk.say(
            "run.turned_forward", actor=self._actor, step=step, after={"steps": [row.step for row in again]}
        )
        for compensation in desk.compensations.values():
            if compensation.state == CompensationState.REGISTERED and compensation.ordered_by:
                desk.set(compensation, ordered_by="")
        for row in again:
            self._new_generation(row, args=new if row is first else None, verb="redo")
        self._resume("a person ordered the run to go forward again")

    def _unmasked(self, action: Action) -> ActionFacts:
        return next(one for one in self._desk.facts().actions if one.id == action.pk)

    def _retry_items(self, whole: Action, names: tuple[str, ...]) -> None:
        chosen = self._items_again(whole, names)
        if not chosen:
            raise NotAllowed(_NOT_REFUSED)
        self._resume(f"{TRIED_AGAIN} of {chosen} items")

    def _items_again(self, whole: Action, names: tuple[str, ...]) -> int:
        """Let refused items go out again: those named, or all of them. Returns how many. Raises `NotAllowed`."""
        desk = self._desk
        refused = [row for row in desk.items(whole) if row.state == ActionState.REJECTED]
        chosen = [row for row in refused if not names or row.item in names]
        if len(chosen) < len(names):
            raise NotAllowed(_NOT_REFUSED)
        for row in chosen:
            desk.move(
                row,
                "retry",
                ActionState.PREPARED,
                actor=self._actor,
                attempts_used=0,
                refusals=0,
                due_at=desk.now,
                settled_at=None,
            )
            self._register_again(row)
        return len(chosen)

    def accept_items(self, step: str, *, items: tuple[str, ...]) -> None:
        """Leave refused items of a call over many as they are: nothing was done for them, and nothing will be.

        The others are untouched. Once no item is open any more the step is settled and the run goes on; it can only
        close as accepted.
        """
        self._must("accept_items", step)
        desk, whole = self._desk, self._current(step)
        chosen = [unit for unit in refused_items(desk.facts(), step) if unit.item in items]
        if not chosen or len(chosen) < len(items):
            sentence = "Only items that were refused can be accepted as they are."
            raise NotAllowed(Obstacle(code="not_refused_item", sentence=sentence))
        for unit in chosen:
            desk.move(
                desk.action(unit.id),
                "accept",
                ActionState.ACCEPTED,
                actor=self._actor,
                after={"was": unit.state.value, "failed_with": unit.error_class, "detail": unit.error_detail},
                settled_by=self._actor.name,
                due_at=None,
            )
        batch.derive(desk, whole)
        if not refused_items(desk.facts(), step):
            self._resume(f"a person accepted the last {len(chosen)} items")

    def _register_again(self, action: Action) -> None:
        compensation = self._desk.compensations.get(action.pk)
        if compensation is not None and compensation.state == CompensationState.VOIDED:
            self._desk.move(
                compensation,
                "register_again",
                CompensationState.REGISTERED,
                actor=self._actor,
                args=None,
            )

    def _new_generation(self, action: Action, *, args: Json, verb: str) -> None:
        """A superseded key keeps being watched; the new call has its own key and its own row (law 10)."""
        desk = self._desk
        contract = desk.contract(action)
        generation = action.generation + 1
        key = forward_key(desk.run.ref, action.step, action.item, contract.operation, generation)
        # What a person accepted of it stays accepted; the new call has items of its own.
        others = [item for item in desk.items(action) if item.state != ActionState.ACCEPTED]
        for row in (action, *others):
            desk.move(
                row,
                "supersede",
                ActionState.SUPERSEDED,
                actor=self._actor,
                after={"generation": generation, "key": key, "was": row.state},
                due_at=None,
            )
        desk.say(
            f"command.{verb}",
            actor=self._actor,
            step=action.step,
            before={"key": action.key, "args": mask(action.args, contract.secret_fields)},
            after={"key": key, "args": mask(args, contract.secret_fields), "generation": generation},
        )
        successor = Action.objects.create(
            run=desk.run,
            contract_id=action.contract_id,
            step=action.step,
            position=action.position,
            item=action.item,
            generation=generation,
            tool=action.tool,
            key=key,
            args=args,
            why=action.why,
            evidence_note=action.evidence_note,
        )
        desk.actions.append(successor)

    def resume(self) -> None:
        """Let the run go on by its own rules, now that nothing stops it any more."""
        self._must("resume")
        self._resume("a person let the run go on")

    # --- Back ---------------------------------------------------------------------------------------------

    def compensate(
        self, steps: tuple[str, ...] = (), *, leave_out: tuple[str, ...] = (), why: str = ""
    ) -> None:
        """Set the compensations going, strictly in reverse order; a failed one gets fresh tries.

        Those of the steps in `leave_out` are given up first, for the reason `why`: their effects are accepted and count
        as left (decision record 0019). Something has to remain to be compensated. `steps`, where given, names all the
        others: a step that nobody named and nobody left out would be compensated after them all the same. On the way
        back that has been ordered, and the step where it stopped may be named alone.
        """
        self._must("compensate")
        named = set(steps) if self.facts.direction is Direction.FORWARD else set()
        if named and named != {unit.step for unit in to_compensate(self.facts)} - set(leave_out):
            sentence = "All that took effect is compensated, last step first. What is to stay is left out, with a reason."
            raise NotAllowed(Obstacle(code="not_all", sentence=sentence, fields=(("steps", sentence),)))
        for action in self._left_out(leave_out):
            self._leave_as_it_is(action, reason=why)
        self._order_compensations()
        turn_back(self._desk, self._reason("a person ordered the compensation"), self._actor)
        self._resume("a person ordered the compensation")

    def _left_out(self, steps: tuple[str, ...]) -> list[Action]:
        """What a plan leaves out. Raises `NotAllowed` where that cannot be, or where nothing would remain."""
        if not steps:
            return []
        facts = self._desk.facts()
        able = can_be_left_out(facts)
        chosen = [unit for unit in able if unit.step in steps]
        if set(steps) - {unit.step for unit in chosen}:
            sentence = "Only a step whose compensation is open can be left out."
            raise NotAllowed(Obstacle(code="not_in_plan", sentence=sentence))
        if len(chosen) == len(able):
            sentence = "Nothing would be left to compensate."
            raise NotAllowed(Obstacle(code="nothing_to_compensate", sentence=sentence))
        return [self._desk.action(unit.id) for unit in chosen]

    def pause_compensation(self) -> None:
        """Begin no further compensation until somebody lets it go on; what is in flight is brought to its end."""
        self._must("pause_compensation")
        run = self._desk.run
        run.paused_by, run.paused_at = self._actor.name, self._desk.now
        self._desk.say("run.compensation.paused", actor=self._actor)

    def continue_compensation(self) -> None:
        """Let the compensations go on from where they were paused."""
        self._must("continue_compensation")
        self._end_pause()
        self._due_now()

    def _end_pause(self) -> None:
        run = self._desk.run
        if run.paused_at is not None:
            run.paused_by, run.paused_at = "", None
            self._desk.say("run.compensation.continued", actor=self._actor)

    def skip_compensation(self, step: str, *, items: tuple[str, ...] = ()) -> None:
        """Leave out a compensation that was tried and failed, knowingly: its effect is accepted and counts as left.

        Of a call over many: of the items named, or of every one whose compensation failed. The earlier ones go on.
        """
        self._must("skip_compensation", step)
        facts = self._desk.facts()
        tried_ones = [unit for unit in failed_compensations(facts, step) if tried(unit)]
        chosen = [unit for unit in tried_ones if not items or unit.item in items]
        if not chosen or len(chosen) < len(items):
            sentence = "Only a compensation that was tried and failed can be left out."
            raise NotAllowed(Obstacle(code="not_failed", sentence=sentence))
        for unit in chosen:
            self._leave_as_it_is(self._desk.action(unit.id))
        self._resume("a person left out a failed compensation")

    def _leave_as_it_is(self, action: Action, *, reason: str = "") -> None:
        """Give up a compensation: what stays in the world is written into the entry."""
        desk = self._desk
        compensation = desk.compensations[action.pk]
        stays = without_secrets(desk.facts())
        unit = next(unit for unit in units(stays) if unit.id == action.pk)
        desk.move(
            compensation,
            "skip",
            CompensationState.SKIPPED_BY_OPERATOR,
            actor=self._actor,
            reason=reason,
            due_at=None,
            after={
                "of": action.step,
                "tool": compensation.tool,
                "failed_with": compensation.error_class,
                "stays": summary.done(unit),
            },
        )
        desk.withdraw_permits(action, actor=self._actor)
        desk.move(
            action,
            "accept",
            ActionState.ACCEPTED,
            actor=self._actor,
            reason=reason,
            after={"was": action.state, "settled": True},
        )
        batch.derive_of(desk, action)

    def stop_and_compensate(self) -> None:
        """Stop the run, whatever it is doing: nothing new goes out, what is in flight or unknown is settled first, then
        everything is compensated up to the first effect that cannot be. Past that a person orders it.
        """
        self._must("stop_and_compensate")
        for row in self._desk.actions:
            if row.repeat_ordered:
                self._desk.set(row, repeat_ordered=False)
        turn_back(self._desk, self._reason("the run was stopped"), self._actor)
        self._desk.say("command.stop_and_compensate", actor=self._actor)
        self._resume(f"{self._actor.name} stopped the run")

    def _order_compensations(self) -> None:
        desk = self._desk
        for facts in to_compensate(desk.facts()):
            compensation = desk.compensations.get(facts.id)
            if compensation is None:
                continue
            if compensation.state == CompensationState.FAILED:
                desk.move(
                    compensation,
                    "order",
                    CompensationState.DUE,
                    actor=self._actor,
                    attempts_used=0,
                    refusals=0,
                    due_at=desk.now,
                    ordered_by=self._actor.id,
                )
            else:
                desk.set(compensation, ordered_by=self._actor.id)
            if compensation.state == CompensationState.DUE and compensation.who == Who.APPROVAL:
                # Whoever orders it asks for the signature anew: an old request never answers a new question.
                approvals.withdraw(desk, desk.action(facts.id), compensation, actor=self._actor)
                approvals.ask(desk, desk.action(facts.id), compensation)

    # --- Signatures ---------------------------------------------------------------------------------------

    def signoff(self, permit_ref: str) -> SignoffFacts:
        """A request for a signature as it stands under the run's lock; secrets are masked. Raises `NotFound`."""
        row = next((row for row in self._desk.permits if row.ref == permit_ref), None)
        if row is None:
            raise NotFound("sign-off", permit_ref)
        return approvals.signoff_facts(self._desk.facts(), row, approvals.asked([row])[row.pk])

    def sign(self, permit_ref: str) -> None:
        """Sign what a permit's document says; it runs next, if nothing has changed until then."""
        permit = self._open_permit(permit_ref)
        if not self.signoff(permit_ref).unchanged:
            sentence = "What would be sent is not what was asked for any more. No signature was taken."
            raise NotAllowed(Obstacle(code="call_changed", sentence=sentence))
        approvals.sign(self._desk, permit, actor=self._actor)
        self._due_now()

    def reject(self, permit_ref: str) -> None:
        """Refuse to sign: nothing runs, the case goes to a person."""
        approvals.reject(self._desk, self._open_permit(permit_ref), actor=self._actor)
        self._due_now()

    def withdraw_signoff(self) -> None:
        """Take back what waits for a signature: nothing runs, and a person decides again."""
        self._must("withdraw_signoff")
        desk, waits = self._desk, [row for row in self._desk.permits if row.state == PermitState.REQUESTED]
        for row in waits:
            action = desk.action(row.action_id)
            compensation = desk.compensations.get(action.pk) if row.compensation_id is not None else None
            approvals.withdraw(desk, action, compensation, actor=self._actor)
            approvals.ask_anew(desk, compensation, actor=self._actor)
        if desk.handoff is None:
            action = desk.action(waits[0].action_id)
            desk.hand_over(Reason.SIGNOFF_NEEDED, action=action, actor=self._actor)

    def _open_permit(self, permit_ref: str) -> Permit:
        for row in self._desk.permits:
            if row.ref == permit_ref:
                if row.state != PermitState.REQUESTED:
                    sentence = f"This request is {row.state} already. No signature was taken."
                    raise NotAllowed(Obstacle(code="not_requested", sentence=sentence))
                if row.expires_at <= self._desk.now:
                    sentence = f"Expired {row.expires_at:%H:%M:%S}. Nothing ran."
                    raise NotAllowed(Obstacle(code="request_expired", sentence=sentence))
                return row
        raise NotAllowed(Obstacle(code="no_request", sentence="Nobody asked for this signature."))

    # --- Acceptance ---------------------------------------------------------------------------------------

    def mark_acceptable(self, *, end_state: str, looked: Looked | None) -> None:
        """Close the case in an end state of the definition whose conditions were read just now. Starts nothing."""
        self._must("mark_acceptable")
        check = next((c for c in (looked.end_states if looked else ()) if c.id == end_state), None)
        if check is None or not check.met:
            sentence = "The conditions of this end state do not hold. Nothing was closed."
            raise NotAllowed(Obstacle(code="not_acceptable", sentence=sentence))
        if self._proposed("mark_acceptable", "", {"end_state": end_state}):
            return
        desk = self._desk
        conditions = [f"{c.text}: {c.evidence}" for c in check.conditions]
        desk.say(
            "human.handoff.accepted",
            actor=self._actor,
            after={"end_state": check.id, "title": check.title, "conditions": conditions, "by": self._by},
        )
        if desk.run.finished_at is not None:
            # The run is final and stays as it is: what is settled is the contradiction beside it (law 9).
            desk.close_handoff(RunState.CLOSED_ACCEPTED.value, actor=self._actor)
            return
        for action in desk.actions:
            compensation = desk.compensations.get(action.pk)
            if compensation is not None and compensation.state == CompensationState.FAILED:
                desk.move(compensation, "skip", CompensationState.SKIPPED_BY_OPERATOR, actor=self._actor)
                desk.move(action, "accept", ActionState.ACCEPTED, actor=self._actor)
            elif _is_accepted(action, desk):
                desk.move(
                    action,
                    "accept",
                    ActionState.ACCEPTED,
                    actor=self._actor,
                    after={"was": action.state, "settled": action.state == ActionState.CONFIRMED},
                    due_at=None,
                )
        chosen = next(state for state in desk.definition.end_states if state.id == end_state)
        if chosen.follow_ups:
            followups.begin(desk, chosen, actor=self._actor)
        desk.finish(RunState.CLOSED_ACCEPTED, actor=self._actor)
        desk.due_at = None

    # --- Shared -------------------------------------------------------------------------------------------

    def _must(self, verb: str, step: str = "") -> None:
        reason = obstacle(self.facts, verb, step=step)
        if reason is not None:
            raise NotAllowed(reason)

    def _handoff(self) -> Handoff:
        for row in self._desk.handoffs:
            if row.state != HandoffState.RESOLVED:
                return row
        raise NotAllowed(Obstacle(code="no_handoff", sentence="No person is asked about this run just now."))

    def _current(self, step: str) -> Action:
        facts = next(action for action in current(self.facts) if action.step == step)
        return self._desk.action(facts.id)

    def _unknown(self, step: str) -> Action | Compensation:
        return self._unknown_rows(step)[0]

    def _unknown_rows(self, step: str) -> list[Action | Compensation]:
        rows: list[Action | Compensation] = []
        for facts in units(self.facts):
            if step and facts.step != step:
                continue
            if facts.state is ActionState.UNKNOWN:
                rows.append(self._desk.action(facts.id))
            elif facts.compensation is not None and facts.compensation.state is CompensationState.UNKNOWN:
                rows.append(self._desk.compensations[facts.id])
        if not rows:
            raise NotAllowed(Obstacle(code="nothing_unknown", sentence="The outcome of every step is known."))
        return rows

    def _action_of(self, row: Action | Compensation) -> Action:
        return row if isinstance(row, Action) else self._desk.action(row.action_id)

    def _prove(
        self, row: Action | Compensation, verdict: Verdict, reference: str, looked: Looked | None
    ) -> None:
        evidence.store(
            Proof(
                run_id=self._desk.run.pk,
                action_id=self._action_of(row).pk,
                compensation_id=row.pk if isinstance(row, Compensation) else None,
                source="person",
                verdict=verdict,
                key=row.key,
                reference=reference,
                detail=self._reason(""),
                body=looked.body if looked is not None else None,
                by=self._by,
            )
        )

    def _note(self, verb: str, row: Action | Compensation) -> None:
        self._desk.say(
            f"command.{verb}", actor=self._actor, step=self._action_of(row).step, after={"key": row.key}
        )

    def _reason(self, fallback: str) -> str:
        author = self._desk.author
        return (author.reason if author else "") or fallback

    def _resume(self, resolution: str) -> None:
        self._end_pause()
        self._desk.close_handoff(resolution, actor=self._actor)
        self._due_now()

    def _due_now(self) -> None:
        """Let somebody go on at once; a worker that owns the run sees the change at its next write anyway."""
        if not self._desk.run.owner:
            self._desk.due_at = self._desk.now
            self._desk.run.due_at = self._desk.now


def _result_named(contract: Contract, reference: str, looked: Looked | None) -> Json:
    """The result that a compensation can be bound to: what was read, else the reference where the contract has it."""
    if looked is not None and looked.body is not None:
        return looked.body
    names = parts(contract.reference) if contract.reference else ()
    if not names or not reference:
        return None
    document: Json = reference
    for name in reversed(names):
        document = {name: document}
    return document


_NOT_REFUSED = Obstacle(code="not_refused", sentence="Only items that were refused can go out again.")

_MADE_ANEW = frozenset({ActionState.COMPENSATED.value, ActionState.REJECTED.value, ActionState.SKIPPED.value})
"""What did not take effect, or does not any more."""

_NEVER_CARRIED_OUT = frozenset(
    {
        ErrorClass.NOT_SENT.value,
        ErrorClass.THROTTLED.value,
        ErrorClass.TEMPORARY.value,
        ErrorClass.VALIDATION.value,
        ErrorClass.PERMISSION.value,
        ErrorClass.REFUSED.value,
        ErrorClass.CONFLICT.value,
        ErrorClass.NOT_FOUND.value,
    }
)
"""After these a tool has nothing under the key: the same key goes out again (engine.md, section 5)."""


def _is_accepted(action: Action, desk: Desk) -> bool:
    """What accepting is about: on the way forward what is not done, on the way back the effects that are left."""
    if action.state in (ActionState.UNKNOWN, ActionState.PARTIAL):
        return True
    if desk.run.direction == Direction.FORWARD:
        return action.state == ActionState.REJECTED
    return (
        action.state == ActionState.CONFIRMED and desk.contract(action).has_effect and not desk.items(action)
    )
