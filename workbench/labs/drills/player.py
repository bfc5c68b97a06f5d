"""Plays one drill: starts its runs, does what is to be done at each moment, and lets the clock go on over every wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sagas import api
from tools import drill_words as words
from tools.contract import Json
from tools.drills.drill import Drill, concerns
from tools.drills.translate import about
from workbench.bulks import runner
from workbench.labs.drills import inside, outside
from workbench.labs.drills.asking import Asker, begin
from workbench.labs.drills.byhand import ByHand
from workbench.labs.drills.casting import CASTING, enlist
from workbench.labs.drills.cue import AGENT, Answered, Part, Score
from workbench.labs.drills.doing import Mischief, NotPlayable, plans_of
from workbench.labs.drills.ground import Ground
from workbench.labs.drills.hours import lives
from workbench.labs.drills.inside import Pulse
from workbench.labs.drills.outside import Gate, Seen
from workbench.labs.drills.publishing import Publisher

SOON_S = 0.4
"""What is due within this is waited for; over a longer wait the clock is put forward."""
LOOK_S = 0.1
QUIET_LOOKS = 3
"""Nothing goes on by itself when so many looks in a row say so."""
_BY_DEFAULT: Mapping[str, Mapping[str, Json]] = {
    "fault": {"t": 0},
    "command": {"rest": True},
    "claim": {"end": True},
}


@dataclass(kw_only=True)
class Cue:
    """Something to be done at a moment: a fault, a command, or a look that a claim needs."""

    kind: str
    given: Mapping[str, Json]
    moment: Mapping[str, Json]
    part: Part | None
    done: bool = False
    ripe_at: float | None = None

    @property
    def order(self) -> int:
        """The command's place; 0 for everything else."""
        return int(self.given.get("order", 0))


type Look = Callable[[Mapping[str, Json], Part], None]


@dataclass
class Player:
    """One drill on its ground. `look` is called for claims about a moment, at that moment."""

    score: Score
    ground: Ground
    look: Look
    progress: Callable[[str], None]
    cues: list[Cue] = field(default_factory=list)
    gates: dict[str, Gate] = field(default_factory=dict)
    _arrived: dict[str, float] = field(default_factory=dict)
    _records: list[Seen] = field(default_factory=list)
    _pulses: dict[str, Pulse] = field(default_factory=dict)
    _waiting: dict[str, list[int]] = field(default_factory=dict)
    _quiet: int = 0
    _risen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.asker = Asker(self.score, self.ground)
        self.publisher = Publisher(self.score, self.ground.arena.outside)
        self.by_hand = ByHand(self.score, self.publisher)
        self.mischief = Mischief(self.score, self.ground, self.asker, self.publisher)

    @property
    def drill(self) -> Drill:
        """What is played."""
        return self.score.drill

    @property
    def disturbed(self) -> bool:
        """Whether processes, servers or systems were touched."""
        quiet = {
            "callback",
            "bell",
            "third_party",
            "heal",
            "answer",
            "note",
            "publish_definition",
            "publish_contract",
        }
        quiet |= {"change_roles", "disable_person", "clock_forward", "store_refuses", "commit_delayed"}
        return any(
            fault["what"] not in quiet or "point" in fault.get("at", {}) for fault in self.drill.faults
        )

    def play(self) -> None:
        """Play it to its end. What goes otherwise than the file says is in `score.complaints`."""
        if self.drill.begins_at:
            self.ground.hours.set_to(datetime.fromisoformat(self.drill.begins_at))
        enlist(self.score)
        self.publisher.first(CASTING)
        rules, self.gates = outside.plan(self.score)
        if rules:
            self.ground.arena.outside.plan(*rules)
        self.cues = self._all_cues()
        self._start()
        deadline = time.monotonic() + self.drill.time_limit_s
        try:
            while not self._over():
                if time.monotonic() > deadline:
                    self.score.complaints.append(self._not_at_rest())
                    break
                self.mischief.tend()
                self._start_what_struck_itself()
                self._see()
                if self._do_what_is_due() or self._open_gates():
                    self._quiet = 0
                    continue
                if not self._put_clock_forward():
                    time.sleep(LOOK_S)
        finally:
            self._let_everybody_pass()
            self.mischief.clear()

    # --- Beginning ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        for part in self.score.parts:
            part.start_key = part.case
            part.ref = api.run_ref(AGENT, part.start_key)
        self._armed = plans_of(self.score, str(self.ground.arena.folder))
        if self._armed:
            self.ground.arm([plan for *__, plan in self._armed])
        self.ground.hours.begin()
        for cue in self.cues:
            if "start" in cue.moment:
                self._do(cue)
        starts = [command for command in self.drill.commands if command["command"] == "start"]
        for part in self.score.parts:
            if not any(concerns(command, part.id) for command in starts):
                begin(self.score, part)

    def _all_cues(self) -> list[Cue]:
        found: list[Cue] = []
        for fault in self.drill.faults:
            if "point" not in fault.get("at", {}):
                found += self._cues("fault", fault, fault["what"] in _PER_RUN)
        for command in self.drill.commands:
            found += self._cues("command", command, command["command"] not in _ONCE)
        for expected in (self.drill.expected, *self.drill.expected.get("runs", {}).values()):
            for claim in (*expected.get("must_not", ()), *expected.get("also", ())):
                if claim["claim"] in words_at_a_moment:
                    found += self._cues("claim", claim, per_run=True)
        return found

    def _cues(self, kind: str, given: Mapping[str, Json], per_run: bool) -> list[Cue]:
        moment = given.get("at", _BY_DEFAULT[kind])
        whose = [part for part in self.score.parts if concerns(given, part.id)]
        if "run" in moment:
            whose = [part for part in whose if part.id == moment["run"]] or whose
        if str(given.get("command", "")).startswith("bulk_"):
            return [Cue(kind=kind, given=given, moment=moment, part=None)]
        if not per_run and not ("run" in given or "runs" in given):
            named = [part for part in self.score.parts if part.id == moment.get("run", part.id)]
            return [Cue(kind=kind, given=given, moment=moment, part=named[0] if named else None)]
        return [Cue(kind=kind, given=given, moment=moment, part=part) for part in whose]

    # --- Looking ------------------------------------------------------------------------------------------------------

    def _see(self) -> None:
        refs = [part.ref for part in self.score.parts]
        self._pulses = {pulse.ref: pulse for pulse in inside.pulses(refs)}
        self._waiting = {
            name: calls for name, calls in self.ground.arena.outside.gates().items() if name in self.gates
        }
        for name in self._waiting:
            self._arrived.setdefault(name, self.ground.hours.now())
        if any(_needs_ledger(cue.moment) for cue in self.cues if not cue.done):
            self._records = outside.ledger(self.ground.arena.outside, self.score)

    def _hot(self, part: Part) -> bool:
        """Whether a run goes on by itself in the next moment."""
        pulse = self._pulses.get(part.ref)
        if pulse is None:
            return False
        if pulse.owner:
            # Held outside: the clock decides. With a dead or stopped owner: recovery will come by itself.
            held = any(name.startswith(f"{part.case}.") for name in self._waiting)
            return not held or not lives(pulse.held_by)
        return pulse.due_at is not None and pulse.due_at - pulse.now < SOON_S

    def _anything_hot(self) -> bool:
        hot = any(self._hot(part) for part in self.score.parts) or self.mischief.busy or self._bulk_busy()
        self._quiet = 0 if hot else self._quiet + 1
        return hot or self._quiet < QUIET_LOOKS

    def _bulk_busy(self) -> bool:
        """Whether a bulk of this drill goes on; where it only waits for its cases, time may pass."""
        if not self.score.bulks or not runner.running(self.score.bulks):
            return False
        return runner.sending(self.score.bulks) or all(self._at_rest_alone(part) for part in self.score.parts)

    def _at_rest_alone(self, part: Part) -> bool:
        pulse = self._pulses.get(part.ref)
        return pulse is None or (pulse.with_a_person and not pulse.owner)

    def _at_rest(self, part: Part) -> bool:
        pulse = self._pulses.get(part.ref)
        if pulse is None:
            return True
        return pulse.with_a_person and not pulse.owner and not self._hot(part)

    def _all_at_rest(self) -> bool:
        return self._quiet >= QUIET_LOOKS and all(self._at_rest(part) for part in self.score.parts)

    # --- Doing --------------------------------------------------------------------------------------------------------

    def _do_what_is_due(self) -> bool:
        """Do everything whose moment has come, looks first, then faults, then the next command; whether any was."""
        ripe = [cue for cue in self.cues if not cue.done and self._ripe(cue)]
        for kind in ("claim", "fault"):
            for cue in ripe:
                if cue.kind == kind:
                    self._do(cue)
        if any(cue.kind != "command" for cue in ripe):
            return True
        return self._give_next_command(ripe)

    def _give_next_command(self, ripe: list[Cue]) -> bool:
        for cue in ripe:
            if self._earlier(cue):
                continue
            group = [cue, *self._at_the_same_time(cue)]
            self.progress(", ".join(f"{one.given['actor']}: {one.given['command']}" for one in group))
            for one in group:
                one.done = True
            if cue.part is not None:
                self.asker.open_pages(cue.order, cue.part)
            self._judge_answers(group, self._give(group))
            self._quiet = 0
            return True
        return False

    def _at_the_same_time(self, cue: Cue) -> list[Cue]:
        orders = {cue.order} | {
            other.order
            for other in self.cues
            if other.given.get("concurrent_with") == cue.order
            or cue.given.get("concurrent_with") == other.order
        }
        return [
            one
            for one in self.cues
            if one.kind == "command"
            and not one.done
            and one is not cue
            and _together(one, cue)
            and (one.order in orders or one.given.get("concurrent_with") in orders)
        ]

    def _give(self, group: list[Cue]) -> list[Answered]:
        first = group[0]
        word = self.by_hand.do(first.given, first.part)
        if word:
            return [
                Answered(
                    order=first.order,
                    run=first.part.id if first.part else "",
                    word=word,
                    code=word,
                    said="",
                    command_id="",
                    at=self.ground.hours.now(),
                )
            ]
        try:
            return self.asker.together([(one.given, one.part) for one in group])
        except Exception as error:  # noqa: BLE001  whatever broke is how the command was answered
            return [
                Answered(
                    order=one.order,
                    run=one.part.id if one.part else "",
                    word="failed_nothing_changed",
                    code=type(error).__name__,
                    said=str(error),
                    command_id="",
                    at=self.ground.hours.now(),
                )
                for one in group
            ]

    def _judge_answers(self, group: list[Cue], answers: list[Answered]) -> None:
        self.score.answers += answers
        for cue in group:
            wanted = cue.given["expected_result"]
            allowed = wanted if isinstance(wanted, list) else [wanted]
            mine = [one for one in answers if one.order == cue.order]
            where = f"command {cue.order} ({cue.given['command']})" + _of(cue.part)
            if not mine:
                self.score.complaints.append(f"{where}: expected {' or '.join(allowed)}, got no answer")
            for answer in mine:
                if answer.word not in allowed:
                    told = f"{answer.word} ({answer.code}: {answer.said})"
                    self.score.complaints.append(f"{where}: expected {' or '.join(allowed)}, is {told}")
                elif answer.code not in cue.given.get("expected_code", [answer.code]):
                    codes = " or ".join(cue.given["expected_code"])
                    self.score.complaints.append(f"{where}: expected code {codes}, is {answer.code}")
                missing = [text for text in cue.given.get("expected_says", ()) if text not in answer.said]
                if missing:
                    self.score.complaints.append(f"{where}: does not say {missing[0]!r}: {answer.said}")

    def _do(self, cue: Cue) -> None:
        cue.done = True
        if cue.kind == "claim":
            if cue.part is not None:
                self.look(cue.given, cue.part)
            return
        if cue.kind == "command":
            self._judge_answers([cue], self._give([cue]))
            return
        self.progress(f"{cue.given['what']}{_of(cue.part)}")
        try:
            self.mischief.do(cue.given, cue.part)
        except NotPlayable as error:
            self.score.complaints.append(f"fault {cue.given['what']}: cannot be played: {error}")
        if "id" in cue.given:
            self.score.faults_done.setdefault(str(cue.given["id"]), self.ground.hours.now())

    # --- Moments --------------------------------------------------------------------------------------------------------

    def _ripe(self, cue: Cue) -> bool:
        if cue.ripe_at is None and self._has_come(cue) and not self._too_early(cue):
            cue.ripe_at = self.ground.hours.now()
        later = float(cue.moment.get("plus_s", 0.0))
        return cue.ripe_at is not None and self.ground.hours.now() >= cue.ripe_at + later

    def _watched(self, cue: Cue) -> Part:
        """The run whose moment it is: the one that the moment names, else the one that the cue is about."""
        named = [part for part in self.score.parts if part.id == cue.moment.get("run")]
        return named[0] if len(named) == 1 else cue.part or self.score.parts[0]

    def _too_early(self, cue: Cue) -> bool:
        """The rest that a command waits for is the one after the command before it."""
        return cue.kind == "command" and "rest" in cue.moment and bool(self._earlier(cue))

    def _earlier(self, cue: Cue) -> list[Cue]:
        """The commands before this one that are still to be given."""
        commands = (one for one in self.cues if one.kind == "command" and _together(one, cue))
        return [one for one in commands if not one.done and one.order < cue.order]

    def _has_come(self, cue: Cue) -> bool:
        moment, part = cue.moment, self._watched(cue)
        match next(name for name in words.MOMENTS if name in moment):
            case "t":
                return self.ground.hours.now() >= float(moment["t"])
            case "during":
                return bool(self._gate_of(part, moment) in self._waiting)
            case "after":
                of, attempt = moment["after"], moment.get("attempt", 1)
                item = moment.get("item", "")
                return outside.nth(self._records, "replied", of, part.case, attempt, item) is not None
            case "after_command":
                same = [
                    one for one in self.cues if one.kind == "command" and one.order == moment["after_command"]
                ]
                mine = [one for one in same if one.part is part] or same
                return all(one.done for one in mine)
            case "after_fault":
                return str(moment["after_fault"]) in self.score.faults_done
            case "workflow_state":
                pulse = self._pulses.get(part.ref)
                return pulse is not None and pulse.state == str(moment["workflow_state"])
            case "action":
                return self._state_of(part, moment["action"], moment.get("item", "")) == str(moment["is"])
            case "compensation":
                facts = api.run_facts(part.ref)
                unit = inside.unit(facts, moment["compensation"], moment.get("item", ""))
                return inside.compensation_state(unit) == str(moment["is"])
            case "rest":
                waiting = [one for one in self.score.parts if cue.part is None or one is part]
                return self._quiet >= QUIET_LOOKS and all(self._at_rest(one) for one in waiting)
            case "end":
                rest = [one for one in self.cues if not one.done and "end" not in one.moment]
                return not rest and self._all_at_rest()
        return False

    def _state_of(self, part: Part, step: str, item: str) -> str:
        if part.ref not in self._pulses:
            return ""
        unit = inside.unit(api.run_facts(part.ref), step, item)
        return unit.state.value if unit is not None else ""

    def _gate_of(self, part: Part, moment: Mapping[str, Json]) -> str:
        place = about(part.case, moment["during"], moment.get("item", ""))
        return f"{place}.{moment.get('attempt', 1)}"

    # --- Letting time pass ----------------------------------------------------------------------------------------------

    def _open_gates(self) -> bool:
        opened = False
        for name in list(self._waiting):
            gate = self.gates[name]
            if self.ground.hours.now() < self._arrived[name] + gate.after_s or self._still_held(name):
                continue
            if gate.together_with and not self._partner_waits(name, gate):
                continue
            self.ground.arena.outside.open_gate(name)
            self._waiting.pop(name)
            opened = True
        return opened

    def _still_held(self, name: str) -> bool:
        """Whether something is still to be done while this call is held."""
        return any(
            not cue.done
            and "during" in cue.moment
            and self._gate_of(cue.part or self.score.parts[0], cue.moment) == name
            for cue in self.cues
        )

    def _partner_waits(self, name: str, gate: Gate) -> bool:
        case = name.partition(".")[0]
        return any(
            self.gates[other].of == gate.together_with and other.startswith(f"{case}.")
            for other in self._arrived
        )

    def _put_clock_forward(self) -> bool:
        """Go on to the next thing that nothing but time brings; whether there was one."""
        if self._anything_hot():
            return False
        now = self.ground.hours.now()
        ahead = [float(cue.moment["t"]) for cue in self.cues if not cue.done and "t" in cue.moment]
        ahead += [
            cue.ripe_at + float(cue.moment["plus_s"])
            for cue in self.cues
            if not cue.done and cue.ripe_at is not None and "plus_s" in cue.moment
        ]
        ahead += [
            self._arrived[name] + self.gates[name].after_s
            for name in self._waiting
            if self.gates[name].after_s and not self._still_held(name)
        ]
        waited_for = bool(ahead)
        for part in self.score.parts:
            pulse = self._pulses.get(part.ref)
            if pulse is not None and pulse.due_at is not None and (waited_for or not pulse.with_a_person):
                ahead.append(now + pulse.due_at - pulse.now)
        later = [at for at in ahead if at > now]
        if not later:
            return False
        self.ground.hours.jump(min(later) - now + 0.05)
        self._quiet = 0
        return True

    def _let_everybody_pass(self) -> None:
        for name in self.gates:
            self.ground.arena.outside.open_gate(name)

    def _start_what_struck_itself(self) -> None:
        """A process that fell at an armed point comes back where its fault says so; a worker's child does by itself."""
        for fault, _part, plan in self._armed:
            if fault.get("then") != "start" or plan["once_file"] in self._risen or not self._happened(plan):
                continue
            down = [name for kind in ("worker", "sweep") for name in self.ground.arena.names(kind)]
            for name in [name for name in down if not self.ground.arena.runs(name)]:
                self.ground.arena.start(name)
                self._risen.add(str(plan["once_file"]))

    # --- The end ------------------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        if any(not cue.done for cue in self.cues):
            return False
        if any("once" not in plan and not self._happened(plan) for *__, plan in self._armed):
            return False
        return self._all_at_rest()

    def _happened(self, plan: Mapping[str, Json]) -> bool:
        return Path(str(plan["once_file"])).exists()

    def _not_at_rest(self) -> str:
        stuck = [
            f"{part.name} is {pulse.state}"
            for part in self.score.parts
            if (pulse := self._pulses.get(part.ref)) is not None and not self._at_rest(part)
        ]
        undone = [f"{cue.kind} at {dict(cue.moment)}" for cue in self.cues if not cue.done]
        missed = [plan["point"] for *__, plan in self._armed if not self._happened(plan)]
        reasons = [
            *stuck[:3],
            *(f"never came to {one}" for one in undone[:2]),
            *(f"never passed {one}" for one in missed[:2]),
        ]
        return f"not at its end after {self.drill.time_limit_s:.0f} s: {'; '.join(reasons)}"


_PER_RUN = frozenset(
    {"callback", "bell", "store_refuses", "commit_delayed", "third_party", "heal", "answer", "note"}
)
_ONCE = frozenset(
    {
        *("publish_definition", "publish_contract", "withdraw_tool", "restore_tool"),
        *("disable_person", "delete_person", "change_roles", "bulk_retry", "bulk_mark_acceptable"),
        *("freeze", "unfreeze"),
    }
)
words_at_a_moment = frozenset({"seen", "offer", "preview", "page", "alarm"})


def _together(one: Cue, other: Cue) -> bool:
    """Whether two commands are about the same run; one for many runs is about each."""
    return one.part is other.part or one.part is None or other.part is None


def _needs_ledger(moment: Mapping[str, Json]) -> bool:
    return "after" in moment


def _of(part: Part | None) -> str:
    return (
        f" of run {part.name}"
        if part is not None and part.runs.count + part.number > 2
        else (f" of run {part.id}" if part is not None and part.id != "W" else "")
    )
