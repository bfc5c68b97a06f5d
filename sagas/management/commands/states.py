"""`manage.py states [--check]`: docs/states.md out of `sagas.states`. Needs no database. Never edits the tables."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sagas.states import FINAL_RUN_STATES, MOVES, STATES, Machine, Move, Who

PATH = "docs/states.md"

_ABOUT = {
    Machine.RUN: "A run's state is never chosen: it follows from its actions, compensations and handoff "
    "(`sagas.planner.state_of`), final before handoff before recovering before awaiting approval before "
    "compensating or running. The verb of a move follows from its two ends.",
    Machine.ACTION: "One row for each call that is to be made once, and for each generation of it. `unknown` is not "
    "failed: only evidence or a person with evidence leads out of it.",
    Machine.COMPENSATION: "Registered in the commit that prepares its action, so that a crash between the two leaves "
    "nothing without its counterpart.",
    Machine.HANDOFF: "What a person is asked to settle. How high it was escalated stands beside its state.",
    Machine.PERMIT: "What a sign-off becomes in the engine: bound to the digest of the very call, good for a while, "
    "used up by the commit that sends.",
    Machine.PROPOSAL: "What one person stated of something unknown that cannot be taken back: it counts once a second, "
    "different person confirms it, and is void when the facts change.",
}
_WHO = {
    Who.SYSTEM: "the engine itself",
    Who.RECOVERY: "recovery, for a worker that is gone",
    Who.EVIDENCE: "evidence: a query's answer, a late answer, a reading",
    Who.OPERATOR: "a person who settles the case",
    Who.SECOND: "a second person, or an approver",
    Who.AGENT: "an agent, through what it is allowed next",
}
_BIRTH = "[*]"


class Command(BaseCommand):
    """Writes the page of states, or says how it differs from the code."""

    help = "Write docs/states.md from the tables of states and moves."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--check` writes nothing and fails when the page is not up to date."""
        parser.add_argument("--check", action="store_true", help="fail if the page is not up to date")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises `CommandError` with the differing lines when a check fails."""
        path = settings.BASE_DIR / PATH
        page = render()
        if not options["check"]:
            path.write_text(page, encoding="utf-8")
            self.stdout.write(f"{PATH} is written.")
            return
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        if stored != page:
            lines = difflib.unified_diff(
                stored.splitlines(), page.splitlines(), PATH, "sagas/states.py says", lineterm="", n=0
            )
            hint = '\n\nRun `make manage ARGS="states"` and commit the page.'
            raise CommandError("\n".join([f"{PATH} is out of date:", *list(lines)[:40]]) + hint)
        self.stdout.write(f"{PATH} is up to date.")


def render() -> str:
    """The whole page as Markdown, ending in one newline."""
    parts = [
        "# States and moves",
        "Written by `manage.py states` from `sagas/states.py`; edit that file, never this page. The same tables make "
        "the ledger's check, the guard inside the database and the exhaustive test.",
        "Who makes a move: " + " · ".join(f"**{who}** {words}" for who, words in _WHO.items()) + ".",
    ]
    for machine in Machine:
        parts += _section(machine)
    return "\n\n".join(parts) + "\n"


def _section(machine: Machine) -> Iterator[str]:
    moves = [move for move in MOVES if move.machine is machine]
    yield f"## {machine.value.capitalize()}"
    yield _ABOUT[machine]
    yield "States: " + ", ".join(f"`{state}`" for state in STATES[machine]) + "."
    if machine is Machine.RUN:
        finals = [state for state in STATES[machine] if state in FINAL_RUN_STATES]
        yield "Final: " + ", ".join(f"`{state}`" for state in finals) + "."
    yield _diagram(machine, moves)
    yield _table(moves)


def _diagram(machine: Machine, moves: Iterable[Move]) -> str:
    """One arrow for each pair of states, labelled with every verb that makes the move."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for move in moves:
        names = verbs.setdefault((move.source or _BIRTH, move.target), [])
        if move.verb not in names:
            names.append(move.verb)
    arrows = [f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in verbs.items()]
    left = {source for source, _ in verbs}
    ends = [f"    {state} --> [*]" for state in STATES[machine] if state not in left]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, *ends, "```"])


def _table(moves: Iterable[Move]) -> str:
    """One row for each verb, sources with the same targets together."""
    rows = ["| verb | source | target | entry | who |", "|---|---|---|---|---|"]
    for (verb, entry, who), same in groupby(moves, key=lambda move: (move.verb, move.entry, move.who)):
        targets: dict[str, list[str]] = {}
        for move in same:
            targets.setdefault(f"`{move.source}`" if move.source else "none", []).append(f"`{move.target}`")
        for ends, sources in _by_targets(targets):
            rows.append(f"| {verb} | {', '.join(sources)} | {ends} | `{entry}` | {who.replace(' ', ', ')} |")
    return "\n".join(rows)


def _by_targets(targets: dict[str, list[str]]) -> Iterable[tuple[str, list[str]]]:
    together: dict[str, list[str]] = {}
    for source, ends in targets.items():
        together.setdefault(", ".join(ends), []).append(source)
    return together.items()
