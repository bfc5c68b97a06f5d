"""What must agree inside one drill beyond its form: whatever is named is there, and every moment is one moment.

Takes a document whose form is sound; yields faults, knows nothing of files.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tools import drill_words as words
from tools.contract import Json
from tools.problems import Fault, Path

_MOMENT_EXTRAS = frozenset({"plus_s", "run", "attempt", "item", "is", "of", "nth"})
_MARK_EXTRAS = frozenset({"attempt", "target", "nth"})
_BOUNDS = ("exactly", "at_least", "at_most")
_BOUNDED = frozenset({"calls", "effects", "attempts", "handoffs"})
_OUTSIDE = frozenset({"system", "anybody"})
_FIELDS_OF_BEHAVIOUR: Mapping[str, frozenset[str]] = {
    "ok": frozenset({"ref", "bytes", "answer", "result", "text"}),
    "late": frozenset({"ref", "bytes", "answer", "result", "text"}),
    "timeout-but-applied": frozenset({"ref"}),
    "timeout-not-applied": frozenset(),
    "reject": frozenset({"http", "code", "text"}),
    "5xx": frozenset({"http", "applied", "code", "text"}),
    "429": frozenset({"retry_after_s"}),
    "garbage": frozenset({"http", "applied", "kind"}),
    "partial": frozenset({"items"}),
    "accepted": frozenset({"ref"}),
}
_FIELDS_OF_ANY = frozenset(
    {"on", "behaviour", "attempt", "item", "run", "runs", "note", "after_s", "together_with", "reference"}
)


def faults_of_drill(document: Json) -> Iterator[Fault]:
    """Everything that does not agree, in no particular order."""
    yield from _Checker(document).faults()


class _Checker:
    def __init__(self, document: Json) -> None:
        self.expected: dict[str, Json] = document["expected"]
        self.scenario: dict[str, Json] = document["scenario"]
        self.steps = {step["id"]: step for step in self.scenario["workflow"]["steps"]}
        self.added: set[str] = {
            step["id"]
            for one in (*self.scenario.get("commands", []), *self.scenario.get("faults", []))
            for step in one.get("change", {}).get("insert_steps", [])
        }
        self.runs = [run["id"] for run in self.scenario.get("runs", [{"id": "W"}])]
        self.actors = set(self.scenario.get("actors", {}))
        self.orders = {command["order"] for command in self.scenario.get("commands", [])}
        self.fault_ids = {fault["id"] for fault in self.scenario.get("faults", []) if "id" in fault}

    def faults(self) -> Iterator[Fault]:
        yield from self._workflow()
        yield from self._downstream()
        for number, fault in enumerate(self.scenario.get("faults", [])):
            yield from self._fault(fault, ("scenario", "faults", number))
        yield from self._commands()
        yield from self._expectations(self.expected, ("expected",))
        for run, expected in self.expected.get("runs", {}).items():
            yield from self._known(run, self.runs, "run", ("expected", "runs", run))
            yield from self._expectations(expected, ("expected", "runs", run))

    # --- The scenario -------------------------------------------------------------------------------------------------

    def _workflow(self) -> Iterator[Fault]:
        place: Path = ("scenario", "workflow", "steps")
        yield from _twice([step["id"] for step in self.scenario["workflow"]["steps"]], place, "id", "steps")
        yield from _twice(self.runs, ("scenario", "runs"), "id", "runs")
        earlier: list[str] = []
        for number, step in enumerate(self.scenario["workflow"]["steps"]):
            here = (*place, number)
            for index, name in enumerate(step.get("uses_output_of", [])):
                yield from self._known(name, earlier, "earlier step", (*here, "uses_output_of", index))
            undo = step.get("compensation")
            for index, name in enumerate((undo or {}).get("only_after", [])):
                known = [other for other in self.steps if other != step["id"]]
                yield from self._known(name, known, "step", (*here, "compensation", "only_after", index))
            if (step["class"] == "compensable") != (undo is not None):
                message = "a compensable step names its compensation, and no other step does"
                yield Fault(path=(*here, "class"), message=message, remedy="Correct one of the two.")
            if "items" in step and "loop" in step:
                message = "a step is either one call over many or many calls"
                yield Fault(path=(*here, "loop"), message=message, remedy="Remove items or loop.")
            earlier.append(step["id"])

    def _downstream(self) -> Iterator[Fault]:
        for number, one in enumerate(self.scenario.get("downstream", [])):
            here: Path = ("scenario", "downstream", number)
            yield from self._which_runs(one, here)
            yield from self._call(one["on"], (*here, "on"))
            yield from self._item(one["on"], one.get("item"), (*here, "item"))
            allowed = _FIELDS_OF_BEHAVIOUR[one["behaviour"]] | _FIELDS_OF_ANY
            for name in one:
                if name not in allowed:
                    known = ", ".join(sorted(allowed - {"on", "behaviour"}))
                    message = f"`{name}` says nothing about `{one['behaviour']}`"
                    yield Fault(path=(*here, name), message=message, remedy=f"Known here: {known}.")
            if "answer" in one and not one["on"].endswith(".query"):
                message = "`answer` says what a query is told"
                yield Fault(path=(*here, "answer"), message=message, remedy="Use ref, text or bytes.")

    def _fault(self, fault: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        yield from self._which_runs(fault, here)
        yield from self._moment(fault.get("at"), (*here, "at"))
        if "actor" in fault:
            yield from self._known(fault["actor"], self.actors, "actor", (*here, "actor"))
        if "step" in fault:
            yield from self._known(fault["step"], self.steps, "step", (*here, "step"))
        if fault["what"] in ("heal", "answer"):
            yield from self._call(fault["of"], (*here, "of"))

    def _commands(self) -> Iterator[Fault]:
        commands = self.scenario.get("commands", [])
        taken: set[tuple[int, str]] = set()
        for number, command in enumerate(commands):
            here: Path = ("scenario", "commands", number)
            yield from self._which_runs(command, here)
            yield from self._moment(command.get("at"), (*here, "at"))
            yield from self._known(command["actor"], self.actors, "actor", (*here, "actor"))
            named = [command["run"]] if "run" in command else command.get("runs", self.runs)
            for pair in [(command["order"], run) for run in named]:
                if pair in taken:
                    message = f"order {pair[0]} is taken already"
                    yield Fault(path=(*here, "order"), message=message, remedy="Give it another number.")
                    break
                taken.add(pair)
            for name in ("concurrent_with", "page_of"):
                if name in command:
                    yield from self._order(command[name], (*here, name))
            yield from self._target(command, here)

    def _target(self, command: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        target, verb = command.get("target", "workflow"), command["command"]
        if target in ("workflow", "handoff") or verb in ("start", "withdraw_tool", "restore_tool"):
            return
        if verb in ("disable_person", "delete_person", "change_roles"):
            yield from self._known(target, self.actors, "actor", (*here, "target"))
            return
        step, _, item = target.removeprefix("undo ").partition("/")
        yield from self._known(step, self.steps, "step", (*here, "target"))
        yield from self._item(f"{step}.do", item or None, (*here, "target"))

    # --- What must hold -----------------------------------------------------------------------------------------------

    def _expectations(self, expected: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        yield from self._standing(expected, here)
        for step, effects in expected.get("external_effects", {}).items():
            where = (*here, "external_effects", step)
            yield from self._known(step, {*self.steps, *self.added}, "step", where)
            for item in effects.get("items", {}):
                yield from self._item(f"{step}.do", item, (*where, "items", item))
        for name in ("audit_must_contain", "events_must_contain"):
            for number, entry in enumerate(expected.get(name, [])):
                yield from self._entry(entry, (*here, name, number))
        for name in ("must_not", "also"):
            for number, claim in enumerate(expected.get(name, [])):
                yield from self._claim(claim, (*here, name, number))

    def _standing(self, expected: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        for name in ("actions", "compensations"):
            for step, state in expected.get(name, {}).items():
                where = (*here, name, step)
                yield from self._known(step, {*self.steps, *self.added}, "step", where)
                for item in state if isinstance(state, dict) else ():
                    yield from self._item(f"{step}.do", item, (*where, item))
        handoff = expected.get("handoff", {})
        for name in ("allowed_actions", "not_offered", "refusal_codes"):
            for target in handoff.get(name, {}):
                if target != "workflow":
                    step = target.partition("/")[0]
                    yield from self._known(step, self.steps, "step", (*here, "handoff", name, target))
        for name in ("asked_as", "claimed_by"):
            if handoff.get(name, "nobody") != "nobody":
                yield from self._known(handoff[name], self.actors, "actor", (*here, "handoff", name))
        if "about" in handoff:
            yield from self._known(handoff["about"], self.steps, "step", (*here, "handoff", "about"))

    def _entry(self, entry: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        yield from self._which_runs(entry, here)
        if "actor" in entry:
            yield from self._known(entry["actor"], {*self.actors, *_OUTSIDE}, "actor", (*here, "actor"))
        if "target" in entry:
            step, _, item = entry["target"].partition("/")
            yield from self._known(step, {*self.steps, *self.added}, "step", (*here, "target"))
            yield from self._item(f"{step}.do", item or None, (*here, "target"))

    def _claim(self, claim: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        yield from self._which_runs(claim, here)
        kind = claim["claim"]
        if kind in _BOUNDED and not any(bound in claim for bound in _BOUNDS):
            yield Fault(path=here, message="says no number", remedy=f"Add {', '.join(_BOUNDS)}.")
        yield from self._calls_of_claim(claim, kind, here)
        for name in ("at", "since"):
            yield from self._moment(claim.get(name), (*here, name))
        for name in ("from", "to", "before", "after"):
            yield from self._mark(claim.get(name), (*here, name))
        if kind == "seen":
            yield from self._standing(claim, here)
        if kind == "entry":
            yield from self._entry(claim, here)
        elif "actor" in claim:
            yield from self._known(claim["actor"], self.actors, "actor", (*here, "actor"))
        for name in ("first", "then"):
            if kind == "entries_order":
                yield from self._entry(claim[name], (*here, name))
        if kind == "never":
            for name in ("action", "compensation"):
                if name in claim:
                    yield from self._known(claim[name], self.steps, "step", (*here, name))
        for number, order in enumerate(claim.get("commands", [])):
            yield from self._order(order, (*here, "commands", number))
        if kind == "time" and not {"at_most_s", "at_least_s"} & set(claim):
            yield Fault(path=here, message="says no time", remedy="Add at_most_s or at_least_s.")

    def _calls_of_claim(self, claim: Mapping[str, Json], kind: str, here: Path) -> Iterator[Fault]:
        of = claim.get("of")
        if kind in ("provider_ref", "compensation_tool", "result") and isinstance(of, str):
            yield from self._known(of, self.steps, "step", (*here, "of"))
        elif isinstance(of, list):
            for number, one in enumerate(of):
                call, _, item = one.partition("/")
                yield from self._call(call, (*here, "of", number))
                yield from self._item(call, item or None, (*here, "of", number))
        elif isinstance(of, str):
            yield from self._call(of, (*here, "of"))
            yield from self._item(of, claim.get("item"), (*here, "item"))

    # --- Names --------------------------------------------------------------------------------------------------------

    def _moment(self, moment: Mapping[str, Json] | None, here: Path) -> Iterator[Fault]:
        if moment is None:
            return
        named = [name for name in moment if name not in _MOMENT_EXTRAS]
        if len(named) != 1:
            known = ", ".join(words.MOMENTS)
            message = "is no moment" if not named else f"is {len(named)} moments: {', '.join(named)}"
            yield Fault(path=here, message=message, remedy=f"Write exactly one of {known}.")
        if "run" in moment:
            yield from self._known(moment["run"], self.runs, "run", (*here, "run"))
        for name in ("during", "after", "of"):
            if name in moment:
                yield from self._call(moment[name], (*here, name))
        for name in ("action", "compensation"):
            if name in moment:
                yield from self._known(moment[name], self.steps, "step", (*here, name))
                if "is" not in moment:
                    yield Fault(path=here, message="`is` is missing", remedy="Add the state.")
        if "after_command" in moment:
            yield from self._order(moment["after_command"], (*here, "after_command"))
        if "after_fault" in moment:
            where = (*here, "after_fault")
            yield from self._known(moment["after_fault"], self.fault_ids, "fault", where)

    def _mark(self, mark: Mapping[str, Json] | None, here: Path) -> Iterator[Fault]:
        if mark is None:
            return
        named = [name for name in mark if name not in _MARK_EXTRAS]
        if len(named) != 1:
            yield Fault(
                path=here,
                message="is no mark" if not named else f"is {len(named)} marks",
                remedy=f"Write exactly one of {', '.join(words.MARKS)}.",
            )
        for name in ("call", "answer", "effect"):
            if name in mark:
                yield from self._call(mark[name], (*here, name))
        if "fault" in mark:
            yield from self._known(mark["fault"], self.fault_ids, "fault", (*here, "fault"))
        if "command" in mark:
            yield from self._order(mark["command"], (*here, "command"))

    def _which_runs(self, given: Mapping[str, Json], here: Path) -> Iterator[Fault]:
        if "run" in given:
            yield from self._known(given["run"], self.runs, "run", (*here, "run"))
        for number, run in enumerate(given.get("runs", [])):
            yield from self._known(run, self.runs, "run", (*here, "runs", number))

    def _call(self, call: str, here: Path) -> Iterator[Fault]:
        name, _, direction = call.partition(".")
        if name in self.added and direction in ("do", "query"):
            return
        yield from self._known(name, self.steps, "step", here)
        step = self.steps.get(name)
        if step is None:
            return
        if direction == "undo" and not step.get("compensation"):
            yield Fault(path=here, message=f"{name} has no compensation", remedy="Name another call.")
        can_be_asked = step.get("status_query", "by_key") != "none" or step.get("read_by_ref")
        if direction == "query" and not can_be_asked:
            yield Fault(path=here, message=f"{name} cannot be asked", remedy="Declare a status_query.")

    def _item(self, call: str, item: str | None, here: Path) -> Iterator[Fault]:
        step = self.steps.get(call.partition(".")[0])
        if item is not None and step is not None:
            yield from self._known(item, step.get("items") or step.get("loop") or (), "item", here)

    def _order(self, order: int, here: Path) -> Iterator[Fault]:
        if order not in self.orders:
            known = ", ".join(map(str, sorted(self.orders))) or "none"
            yield Fault(path=here, message=f"there is no command {order}", remedy=f"Known: {known}.")

    def _known(self, name: str, known: Iterable[str], what: str, here: Path) -> Iterator[Fault]:
        names = sorted(known)
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            guess = f"Did you mean `{near[0]}`? " if near else ""
            remedy = f"{guess}Known: {', '.join(names) or 'none'}."
            yield Fault(path=here, message=f"there is no {what} `{name}`", remedy=remedy)


def _twice(names: list[str], place: Path, field: str, what: str) -> Iterator[Fault]:
    for name, count in Counter(names).items():
        if count > 1:
            second = [number for number, one in enumerate(names) if one == name][1]
            message = f"`{name}` is the {field} of {what}[{names.index(name)}] already"
            yield Fault(path=(*place, second, field), message=message, remedy="Give it one of its own.")
