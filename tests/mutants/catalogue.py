"""The seeded bugs: what each changes, which scene must show it. Ids M1 to M25 are those of the catalogue of faults;
E ids are rules of the engine that are easy to get wrong.

A piece that no longer occurs exactly once in its file fails the cheap test beside this; then the bug is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Replace `old`, which occurs once, by `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One seeded bug, and the scene in which it must be caught."""

    name: str
    id: str
    says: str
    scene: str
    edits: tuple[Edit, ...]


def _mutant(name: str, id: str, says: str, scene: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, id=id, says=says, scene=scene, edits=(Edit(file=file, old=old, new=new),))


_ADVANCE, _SETTLE, _PLANNER = "sagas/ledger/advance.py", "sagas/ledger/settle.py", "sagas/planner.py"
_WORKERS, _DESK, _RELAY = "sagas/ledger/workers.py", "sagas/ledger/desk.py", "sagas/relay.py"
_COMPENSATE, _APPROVALS, _BATCH = (
    "sagas/ledger/compensate.py",
    "sagas/ledger/approvals.py",
    "sagas/ledger/batch.py",
)

MUTANTS: tuple[Mutant, ...] = (
    # --- Claims and fences
    _mutant(
        "no_fence",
        "M1",
        "a worker that lost its claim may still write",
        "zombie",
        _ADVANCE,
        "    return desk.run.owner == claim.owner and desk.run.fence == claim.fence\n",
        "    return True\n",
    ),
    _mutant(
        "late_answer_dropped",
        "M23",
        "what a worker saw after it lost its claim is thrown away",
        "zombie",
        "sagas/ledger/late.py",
        "    if outcome.kind not in (OutcomeKind.CONFIRMED, OutcomeKind.REJECTED):\n        return False\n",
        "    if outcome is not None:\n        return False\n",
    ),
    _mutant(
        "nobody_buries",
        "M7 M20",
        "what a dead worker held is never freed: a lost message is a lost run",
        "death",
        _WORKERS,
        '    held = list(Run.objects.filter(owner=owner).order_by("pk").values_list("pk", flat=True))\n',
        "    held: list[int] = []\n",
    ),
    _mutant(
        "sent_is_forgotten",
        "E4",
        "what a dead worker had sent is not declared unknown",
        "death",
        _WORKERS,
        "        _lose_what_was_sent(desk)\n        desk.due_at = desk.now\n",
        "        desk.due_at = desk.now\n",
    ),
    _mutant(
        "clock_of_the_process",
        "M19",
        "leases run by the clock of the process, not by the database's",
        "leases",
        _WORKERS,
        "            \"VALUES (%s, %s, %s, now_() + make_interval(secs => %s), 0, '')\",\n",
        "            \"VALUES (%s, %s, %s, clock_timestamp() + make_interval(secs => %s), 0, '')\",\n",
    ),
    _mutant(
        "expired_lease_renewed",
        "E4",
        "an expired lease is renewed instead of replaced",
        "leases",
        _WORKERS,
        '            "beats = beats + 1 WHERE id = %s AND ended_at IS NULL AND lease_until > now_()",\n',
        '            "beats = beats + 1 WHERE id = %s",\n',
    ),
    _mutant(
        "returning_ignored",
        "E2",
        "what the database says it did not write counts as written",
        "leases",
        _WORKERS,
        "        return bool(cursor.rowcount == 1)\n\n\ndef sign_off",
        "        return True\n\n\ndef sign_off",
    ),
    _mutant(
        "run_twice_in_an_array",
        "E2",
        "a run stands twice in one array of changes, and one of them is dropped without a word",
        "herd",
        "sagas/gates.py",
        "            [list(due), list(due.values())],\n",
        "            [[one.run_id for one in chosen], times],\n",
    ),
    _mutant(
        "run_not_locked",
        "M18",
        "a run is changed without its lock",
        "rivals",
        _DESK,
        '    _, locked = send(FREEZE_SHARED, select(Run, "WHERE id = %s FOR NO KEY UPDATE", [run_id]))\n',
        '    _, locked = send(FREEZE_SHARED, select(Run, "WHERE id = %s", [run_id]))\n',
    ),
    _mutant(
        "action_before_run",
        "E1",
        "a command locks the actions before their run",
        "rivals",
        _DESK,
        '    _, locked = send(FREEZE_SHARED, select(Run, "WHERE id = %s FOR NO KEY UPDATE", [run_id]))\n',
        "    list(Action.objects.select_for_update(no_key=True).filter(run_id=run_id).order_by('id'))\n"
        '    _, locked = send(FREEZE_SHARED, select(Run, "WHERE id = %s FOR NO KEY UPDATE", [run_id]))\n',
    ),
    # --- Sending
    _mutant(
        "compensation_registered_late",
        "M2",
        "the compensation is put on record when the call is confirmed, not before it leaves",
        "turned_back",
        _ADVANCE,
        "        if contract.compensation is not None and unit.pk not in desk.compensations:\n",
        "        if contract.compensation is None and unit.pk not in desk.compensations:\n",
    ),
    _mutant(
        "key_of_chance",
        "M3",
        "every try goes out under a key of its own",
        "lost_answers",
        _ADVANCE,
        "    again = action.state == ActionState.PARTIAL\n    desk.move(\n",
        "    import uuid\n\n    key = f'{key}-{uuid.uuid4().hex[:6]}'\n"
        "    again = action.state == ActionState.PARTIAL\n    desk.move(\n",
    ),
    _mutant(
        "no_dispatch_window",
        "E3",
        "a call leaves however long ago it was marked as sent",
        "late_byte",
        "sagas/executor.py",
        "        send_before=order.committing_since + DISPATCH_WINDOW_S,\n",
        "        send_before=order.committing_since + 3600.0,\n",
    ),
    _mutant(
        "snapshot_after_send",
        "E3",
        "the state before a call is read again after it was sent",
        "prior_state",
        _PLANNER,
        "    if action.sent_at is not None:\n        return True\n    permit = action.permit\n",
        "    permit = action.permit\n",
    ),
    _mutant(
        "no_snapshot",
        "E3",
        "the state before a call is not read",
        "prior_state",
        _PLANNER,
        "    if prior is not None and not _prior_is_fresh(facts, action, prior.max_age_s):\n",
        "    if prior is None and not _prior_is_fresh(facts, action, 0.0):\n",
    ),
    _mutant(
        "freeze_not_looked_at",
        "E1",
        "calls go out while everything is frozen",
        "frozen",
        _PLANNER,
        "    if (held := _held(facts, action.tool)) is not None:\n        return held\n"
        "    prior = action.contract.prior_state\n",
        "    prior = action.contract.prior_state\n",
    ),
    _mutant(
        "freeze_without_lock",
        "E1",
        "a freeze does not wait for the commit of a call that is about to leave",
        "frozen",
        "sagas/tx.py",
        '        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [FREEZE_LOCK])\n',
        '        cursor.execute("SELECT %s", [FREEZE_LOCK])\n',
    ),
    # --- What an answer means
    _mutant(
        "unknown_is_failed",
        "M4",
        "a call without an answer counts as rejected",
        "lost_answers",
        _SETTLE,
        "        case OutcomeKind.UNKNOWN:\n            lose(desk, action, outcome.error_class or ErrorClass.NO_ANSWER, "
        "outcome.detail, entries.VALIDATOR)\n",
        "        case OutcomeKind.UNKNOWN:\n            reject(desk, action, 'reject', ErrorClass.NO_ANSWER, "
        "outcome.detail, entries.VALIDATOR)\n",
    ),
    _mutant(
        "not_found_is_try_again",
        "M5",
        "404 to a create means: create it",
        "lost_answers",
        "tools/outcome.py",
        '    return _unknown(observation, _class_of_status(status), f"status {status} settles nothing")\n',
        "    if status == 404:\n        return _outcome(observation, OutcomeKind.TEMPORARY, ErrorClass.TEMPORARY)\n"
        '    return _unknown(observation, _class_of_status(status), f"status {status} settles nothing")\n',
    ),
    _mutant(
        "throttled_is_outage",
        "M6",
        "429 uses up tries like a failure",
        "throttled",
        "tools/outcome.py",
        "        case Meaning.THROTTLED:\n            return _outcome(observation, OutcomeKind.THROTTLED, ",
        "        case Meaning.THROTTLED:\n            return _outcome(observation, OutcomeKind.TEMPORARY, ",
    ),
    _mutant(
        "garbage_accepted",
        "M12",
        "any 2xx counts as done",
        "lost_answers",
        "tools/outcome.py",
        "    if observation.seen is not Seen.ANSWER:\n"
        '        return _unknown(observation, ErrorClass.GARBAGE, "the answer cannot be read")\n    if fault :=',
        "    if observation.status == 200:\n"
        "        return _outcome(observation, OutcomeKind.CONFIRMED, None, result={}, reference='x')\n    if fault :=",
    ),
    _mutant(
        "absence_counts_at_once",
        "E3",
        '"not found" counts before every limit has passed',
        "too_early",
        "sagas/ledger/asking.py",
        "and (counts_at is None or desk.now >= counts_at)\n",
        "and (counts_at is None or desk.now < counts_at or desk.now >= counts_at)\n",
    ),
    _mutant(
        "repeat_refused_is_rejected",
        "E2",
        "a refused repeat settles the earlier try, which is still unknown",
        "repeated",
        _SETTLE,
        "            action.in_doubt\n        ):\n",
        "            action.in_doubt and not action.in_doubt\n        ):\n",
    ),
    _mutant(
        "key_kept_for_ever",
        "M24",
        "a key is relied on after the tool has forgotten it",
        "repeated",
        _PLANNER,
        "    return retention_s is None or sent_at is None or now < sent_at + timedelta(seconds=retention_s)\n",
        "    return True\n",
    ),
    _mutant(
        "missing_part_is_done",
        "E2",
        "a part that the answer does not name counts as done",
        "batch",
        _BATCH,
        "            outcome, kind=OutcomeKind.UNKNOWN, error_class=ErrorClass.NO_ANSWER, detail=detail, result=None\n",
        "            outcome, kind=OutcomeKind.CONFIRMED, error_class=None, detail=detail, result={}\n",
    ),
    _mutant(
        "one_outcome_for_all",
        "E2",
        "every part of a call over many gets the outcome of the whole",
        "batch",
        _BATCH,
        "    if outcome.kind not in (OutcomeKind.PARTIAL, OutcomeKind.CONFIRMED):\n",
        "    if outcome.kind is OutcomeKind.PARTIAL:\n        outcome = replace(outcome, kind=OutcomeKind.CONFIRMED)\n"
        "    if outcome.kind is OutcomeKind.CONFIRMED:\n        return {row.item: outcome for row in rows}\n"
        "    if outcome.kind not in (OutcomeKind.PARTIAL, OutcomeKind.CONFIRMED):\n",
    ),
    # --- Back
    _mutant(
        "first_in_first_out",
        "M9",
        "what was confirmed first is made up for first",
        "turned_back",
        _PLANNER,
        "            key=lambda action: -(action.confirm_seq or 0),\n",
        "            key=lambda action: action.confirm_seq or 0,\n",
    ),
    _mutant(
        "precondition_ignored",
        "M10",
        "a compensation is sent although its precondition does not hold",
        "third_party",
        _COMPENSATE,
        "    failed = [condition for condition in conditions if not condition.met]\n",
        "    failed = [condition for condition in conditions if condition.met is None]\n",
    ),
    _mutant(
        "unknown_is_made_up_for",
        "M11",
        "a run turns back over a step whose outcome nobody knows",
        "stopped",
        _PLANNER,
        " for action in actions if is_unknown(action)]:\n",
        " for action in actions if is_unknown(action) and facts.direction is Direction.FORWARD]:\n",
    ),
    _mutant(
        "stop_skips_compensation",
        "M22",
        "a stopped run ends without making up for what it did",
        "stopped",
        _PLANNER,
        "    remaining = to_compensate(facts)\n    for action in remaining:\n",
        "    remaining = to_compensate(facts)\n    if facts.direction is Direction.UNDO:\n"
        "        return Finish(state=RunState.COMPENSATED)\n    for action in remaining:\n",
    ),
    Mutant(
        name="stop_does_not_stop",
        id="E7",
        says="a run that has turned back goes on forward",
        scene="stopped",
        edits=(
            Edit(
                file=_ADVANCE,
                old="            settle.leave_out(desk, row, actor=actor)\n\n\ndef _look",
                new="            pass\n\n\ndef _look",
            ),
            Edit(
                file=_PLANNER,
                old="    if facts.direction is Direction.FORWARD:\n        return _forward(",
                new="    going = any(a.state in (ActionState.NOT_STARTED, ActionState.PREPARED) for a in actions)\n"
                "    if going or facts.direction is Direction.FORWARD:\n        return _forward(",
            ),
        ),
    ),
    _mutant(
        "accepted_is_done",
        "E7",
        "a compensation is done when it is answered, not when it is read back",
        "empty_promise",
        _COMPENSATE,
        "        case OutcomeKind.CONFIRMED if verified is None or verified.met:\n",
        "        case OutcomeKind.CONFIRMED if verified is None or verified.met is not None:\n",
    ),
    # --- Signatures
    _mutant(
        "signature_over_anything",
        "M13",
        "a signature is not bound to the call that was read",
        "signed",
        _APPROVALS,
        "    if digest_of(content) != permit.digest:\n        withdraw",
        "    if digest_of(content) == '':\n        withdraw",
    ),
    _mutant(
        "own_signature",
        "M14",
        "who asked for it may sign it",
        "signed",
        "workbench/policies.py",
        "    for one, name in requesters:\n        if one == actor_id:\n",
        "    for one, name in requesters[:0]:\n        if one == actor_id:\n",
    ),
    Mutant(
        name="signature_used_twice",
        id="M15",
        says="a signature that was used up is good for another call",
        scene="signed",
        edits=(
            Edit(
                file="sagas/ledger/verbs.py",
                old="            if compensation.state == CompensationState.DUE and compensation.who == Who.APPROVAL:\n",
                new="            if compensation.state is None and compensation.who == Who.APPROVAL:\n",
            ),
            Edit(
                file=_PLANNER,
                old="            return None if repeated and _still_covers(facts, permit) else ask\n",
                new="            return None\n",
            ),
            Edit(
                file=_APPROVALS,
                old="    return permit.state == PermitState.CONSUMED and row.attempts_used + row.refusals > 0\n",
                new="    return permit.state == PermitState.CONSUMED and row is not None\n",
            ),
        ),
    ),
    Mutant(
        name="signature_never_expires",
        id="M16",
        says="the time limit of a signature is only looked at when it is given",
        scene="signed",
        edits=(
            Edit(
                file=_APPROVALS,
                old="    if permit is None or permit.expires_at <= desk.now:\n        return False\n",
                new="    if permit is None:\n        return False\n",
            ),
            Edit(
                file=_PLANNER,
                old="    fresh = permit.expires_at > facts.now\n",
                new="    fresh = True\n",
            ),
        ),
    ),
    # --- The record and people
    _mutant(
        "refusal_without_entry",
        "M17",
        "a refused command leaves no trace",
        "people",
        "sagas/ledger/verbs.py",
        '        self._desk.say(\n            "command.refused",\n',
        '        if not code:\n          self._desk.say(\n            "command.refused",\n',
    ),
    _mutant(
        "stale_page_accepted",
        "M21",
        "a command is run although the case is not the one that its author saw",
        "people",
        "workbench/commands/_previews.py",
        "    if not seen:\n        return None\n",
        "    if not seen or facts.version:\n        return None\n",
    ),
    _mutant(
        "edit_of_unknown",
        "E5",
        "a call whose outcome nobody knows is sent with other arguments",
        "people",
        "sagas/obstacles.py",
        '    if action is None or action.state is not ActionState.REJECTED:\n        return _why("not_rejected"',
        "    if action is None or action.state not in (ActionState.REJECTED, ActionState.UNKNOWN):\n"
        '        return _why("not_rejected"',
    ),
    _mutant(
        "verdict_too_early",
        "E5",
        '"it did not happen" is taken while it may still arrive',
        "too_early",
        "sagas/obstacles.py",
        "    if counts_at is not None and facts.now < counts_at:\n",
        "    if counts_at is not None and facts.now < counts_at and not step:\n",
    ),
    Mutant(
        name="cursor_relay",
        id="M8",
        says="the relay goes by the highest number that it has seen",
        scene="relay",
        edits=(
            Edit(
                file=_RELAY,
                old='parked_at=None).order_by("seq_from")\n',
                new='parked_at=None, pk__gt=_SEEN[-1]).order_by("seq_from")\n'
                "    _SEEN[:] = sorted([*_SEEN, *(row.pk for row in pending)])\n",
            ),
            Edit(file=_RELAY, old="MOST_TRIES = 5\n", new="MOST_TRIES = 5\n_SEEN = [0]\n"),
        ),
    ),
    _mutant(
        "relay_out_of_order",
        "E9",
        "events of one run leave in any order",
        "relay",
        _RELAY,
        'parked_at=None).order_by("seq_from")\n',
        'parked_at=None).order_by("-seq_from")\n',
    ),
    _mutant(
        "end_without_event",
        "E9",
        "the end of a run is not published",
        "turned_back",
        _DESK,
        "        if run.seq > self._first_seq:\n",
        "        if run.seq > self._first_seq and self._finished is None:\n",
    ),
)
