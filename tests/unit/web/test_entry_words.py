"""Every entry that the engine can write has words of its own, in both languages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation

from sagas import states
from tests import builders
from workbench.web.presenters import activity

ROOT = Path(__file__).resolve().parents[3]


def spoken(source: str) -> Iterator[str]:
    """Names of entries that are said outright, in a call of `say` or as the name of a row."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("say", "_say"):
            yield from _texts(node.args[0])
        elif called == "_note":
            yield from (f"command.{verb}" for verb in _texts(node.args[0]))
        elif called == "EntryRow":
            yield from (name for part in node.keywords if part.arg == "name" for name in _texts(part.value))


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as name):
            yield name
        case ast.IfExp():
            yield from (*_texts(node.body), *_texts(node.orelse))


SAID = {name for path in (ROOT / "sagas").rglob("*.py") for name in spoken(path.read_text("utf-8"))}
MOVED = {(move.entry, move.target) for move in states.MOVES}
CASES = sorted(MOVED | {(name, "") for name in SAID})


def test_the_sources_are_read() -> None:
    assert {"tool.callback.received", "run.replanned", "reconciliation.drift", "run.started"} <= SAID
    assert "command.retry" in SAID


@pytest.mark.parametrize(("name", "target"), CASES)
def test_every_entry_has_words_in_both_languages(name: str, target: str) -> None:
    entry = builders.entry(name, target=target, after={"verb": "retry"})

    english = str(activity.told(entry, reader="maya", clock=builders.clock()).says)
    with translation.override("zh-hans"):
        chinese = str(activity.told(entry, reader="maya", clock=builders.clock()).says)

    assert name not in english
    assert "→" not in english
    assert any("\u4e00" <= char <= "\u9fff" for char in chinese.replace("系统", ""))
