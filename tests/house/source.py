"""The files that the house rules are asked about: the product's own, read once. Knows no rule."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = ("tools", "sagas", "workbench")
_HIDDEN_BUT_OURS = {".ci", ".gitignore"}
_MADE_BY_TOOLS = {"__pycache__", "staticfiles", "test-results", "uv.lock"}


@dataclass(frozen=True)
class Source:
    """One Python file; `name` is its path from the root, with slashes."""

    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The file parsed."""
        return _parsed(self.text)

    @property
    def package(self) -> str:
        """The first part of the path."""
        return self.name.partition("/")[0]


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project, what tools leave behind and hidden folders apart."""
    found = []
    for top in sorted(ROOT.iterdir()):
        if top.name in _MADE_BY_TOOLS or (top.name.startswith(".") and top.name not in _HIDDEN_BUT_OURS):
            continue
        inside = sorted(top.rglob("*")) if top.is_dir() else [top]
        found += [path for path in inside if path.is_file() and not _is_made_by_tools(path.relative_to(top))]
    return tuple(found)


def _is_made_by_tools(path: Path) -> bool:
    return any(part in _MADE_BY_TOOLS or part.startswith(".") for part in path.parts)


def name_of(path: Path) -> str:
    """The path from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


@cache
def texts() -> dict[str, str]:
    """Every file that is text, by its path from the root."""
    found = {}
    for path in files():
        raw = path.read_bytes()
        if b"\0" not in raw:
            found[name_of(path)] = raw.decode("utf-8")
    return found


@cache
def sources(*packages: str) -> tuple[Source, ...]:
    """The Python files of the packages (all three without any named), migrations apart."""
    wanted = packages or PRODUCT
    return tuple(
        Source(name=name, text=text)
        for name, text in texts().items()
        if name.endswith(".py") and name.partition("/")[0] in wanted and "/migrations/" not in name
    )
