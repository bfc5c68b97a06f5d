"""`manage.py requirements [--check]`: which tests prove which requirement, read out of the tests' source.

Imports no test, opens no database and no broker. The requirements are docs/requirements.md; the table is
docs/traceability.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

REQUIREMENTS = "docs/requirements.md"
TABLE = "docs/traceability.md"
TESTS = "tests"

_ROW = re.compile(r"^\| (S\d+)-(\d+)(?:…(\d+))? \| (.+) \|$")
_SECTION = re.compile(r"^## (S\d+ .+)$")
_SHORT = 96
"""Characters of a requirement that the table shows."""


class Command(BaseCommand):
    """Prints the table and writes it; its last line is `open: N`."""

    help = "Print each requirement with the tests that prove it; the last line says how many are open."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """`--check` writes nothing and fails when the stored table is not up to date."""
        parser.add_argument("--check", action="store_true", help="fail if the table is not up to date")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises `CommandError` for markers that name no known requirement, or for a stale table."""
        root = settings.BASE_DIR
        known = requirements((root / REQUIREMENTS).read_text(encoding="utf-8"))
        marks, faults = collect(root / TESTS, root)
        faults += [
            f"{mark.place}: {mark.id} is no requirement of {REQUIREMENTS}"
            for mark in marks
            if mark.id not in {requirement.id for requirement in known}
        ]
        if faults:
            raise CommandError("\n".join(faults))
        proofs = {r.id: sorted({mark.test for mark in marks if mark.id == r.id}) for r in known}
        self._store(root / TABLE, render(known, proofs), check=options["check"])
        if not options["check"]:
            for line in _lines(known, proofs):
                self.stdout.write(line)
        self.stdout.write(f"open: {sum(not tests for tests in proofs.values())}")

    def _store(self, path: Path, page: str, *, check: bool) -> None:
        if not check:
            path.write_text(page, encoding="utf-8")
            return
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        if stored != page:
            rows = set(page.splitlines()) ^ set(stored.splitlines())
            ids = dict.fromkeys(row.split(" ")[1] for row in sorted(rows) if row.startswith("| S"))
            about = f"{TABLE} is out of date: {', '.join(ids) or 'its text'}."
            raise CommandError(f"{about}\nRun `make requirements` and commit the table.")


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One id of docs/requirements.md with its sentence, Markdown emphasis taken out."""

    id: str
    section: str
    text: str

    @property
    def short(self) -> str:
        """The sentence, cut at a word so that it fits a column."""
        if len(self.text) <= _SHORT:
            return self.text
        return self.text[: self.text.rindex(" ", 0, _SHORT)].rstrip(",;:—(") + " …"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One id named by one test; `place` is file and line of the marker."""

    id: str
    test: str
    place: str


def requirements(page: str) -> tuple[Requirement, ...]:
    """The requirements of the page in its order; a row of several (S0-57…67) is one requirement each."""
    found, section = [], ""
    for line in page.splitlines():
        if heading := _SECTION.match(line):
            section = heading.group(1)
        elif row := _ROW.match(line):
            group, first, last, text = row.groups()
            found += [
                Requirement(id=f"{group}-{number}", section=section, text=_of_one(text, number, bool(last)))
                for number in range(int(first), int(last or first) + 1)
            ]
    return tuple(found)


def _of_one(text: str, number: int, one_of_several: bool) -> str:
    """The sentence of one id: of a row of several its opening and its own part."""
    text = text.replace("**", "").replace("`", "")
    if not one_of_several:
        return text
    opening, _, parts = text.rstrip(".").partition(": ")
    for part in parts.split(" · "):
        if part.startswith(f"{number} "):
            return f"{opening.replace(', one each', '')}: {part.removeprefix(f'{number} ')}"
    raise ValueError(f"no part of its own for {number} in: {text}")


def collect(folder: Path, root: Path) -> tuple[list[Mark], list[str]]:
    """Every marker of the tests under `folder`, and what is wrong with markers, each with its place."""
    marks: list[Mark] = []
    faults: list[str] = []
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for call, tests in _marked(ast.parse(path.read_text(encoding="utf-8"), name).body):
            place = f"{name}:{call.lineno}"
            ids = [
                arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            if not call.args or call.keywords or len(ids) != len(call.args):
                faults.append(f'{place}: a requirement is named by a literal id, such as "S2-10"')
            if not tests:
                faults.append(f"{place}: this marker belongs to no test")
            marks += [Mark(id=one, test=f"{name}::{test}", place=place) for one in ids for test in tests]
    return marks, faults


def _marked(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[ast.Call, list[str]]]:
    """Every `mark.requirement(...)` call below, with the names of the tests that it marks."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                tests = [prefix + node.name] if node.name.startswith("test") else []
                yield from ((call, tests) for part in node.decorator_list for call in _calls(part))
            case ast.ClassDef():
                inside = f"{prefix}{node.name}::"
                yield from (
                    (call, _tests(node.body, inside)) for part in node.decorator_list for call in _calls(part)
                )
                yield from _marked(node.body, inside)
            case _:
                yield from ((call, _tests(body, prefix)) for call in _calls(node))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr == "requirement"
        ):
            yield inner


def _tests(body: Iterable[ast.stmt], prefix: str) -> list[str]:
    names = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            names.append(prefix + node.name)
        elif isinstance(node, ast.ClassDef):
            names += _tests(node.body, f"{prefix}{node.name}::")
    return names


def _lines(known: Iterable[Requirement], proofs: Mapping[str, list[str]]) -> Iterator[str]:
    section = ""
    for requirement in known:
        if requirement.section != section:
            section = requirement.section
            yield f"\n{section}"
        first, *rest = proofs[requirement.id] or ["open"]
        yield f"{requirement.id:<6} {requirement.short:<{_SHORT + 2}} {first}"
        yield from (f"{'':<6} {'':<{_SHORT + 2}} {test}" for test in rest)


def render(known: tuple[Requirement, ...], proofs: Mapping[str, list[str]]) -> str:
    """The page of docs/traceability.md."""
    parts = [
        "# Requirements and the tests that prove them",
        f"Written by `make requirements` from [requirements.md](requirements.md) and the markers in `{TESTS}/`; "
        'mark a test with `@pytest.mark.requirement("S2-10")` instead of editing this page.',
    ]
    for section in dict.fromkeys(requirement.section for requirement in known):
        rows = [
            f"| {one.id} | {one.short} | {_cell(proofs[one.id])} |" for one in known if one.section == section
        ]
        parts += [f"## {section}", "\n".join(["| id | requirement | tests |", "|---|---|---|", *rows])]
    parts.append(f"open: {sum(not proofs[requirement.id] for requirement in known)}")
    return "\n\n".join(parts) + "\n"


def _cell(tests: Iterable[str]) -> str:
    files: dict[str, list[str]] = {}
    for test in tests:
        name, _, function = test.partition("::")
        files.setdefault(name, []).append(f"`{function}`")
    return "<br>".join(f"{name}: {', '.join(names)}" for name, names in files.items()) or "open"
