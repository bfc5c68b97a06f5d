"""A process that plays scenes on the product with one seeded bug in it: `python -m tests.mutants.boot`.

Reads a JSON object a line, {"mutant", "scene", "database", "patience_s"}; for each it forks a child, preloaded, that puts
the bug in and plays, and answers {"wrong": [...], "broken": bool}. Mutant "none" = no bug. `--list` prints all mutants.

The product's files are left alone and have no branch for any of this: the code of functions that exist already is
replaced in the child, so that whoever holds a reference to one calls the changed one.
"""

from __future__ import annotations

import inspect
import json
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from urllib.parse import urlsplit

from tests.mutants.catalogue import MUTANTS, Edit, Mutant

ROOT = Path(__file__).resolve().parents[2]


class DoesNotApply(Exception):
    """The product has changed where a seeded bug was to go: write the bug anew."""


def edited(edits: Sequence[Edit], text: str) -> str:
    """The source with the bug in it. Raises `DoesNotApply` unless each piece is found exactly once."""
    for edit in edits:
        if text.count(edit.old) != 1:
            raise DoesNotApply(f"{edit.file} has {text.count(edit.old)} times:\n{edit.old}")
        text = text.replace(edit.old, edit.new)
    return text


def sources(mutant: Mutant) -> dict[str, str]:
    """The files that a mutant changes, by path, as they are with the bug. Raises `DoesNotApply`."""
    files = dict.fromkeys(edit.file for edit in mutant.edits)
    return {
        file: edited([edit for edit in mutant.edits if edit.file == file], (ROOT / file).read_text())
        for file in files
    }


def put_in(mutant: Mutant) -> None:
    """Have the bug in this process from now on. Raises `DoesNotApply` when it changes no function."""
    changed = 0
    for file, text in sources(mutant).items():
        module = import_module(file.removesuffix(".py").replace("/", "."))
        changed += _exchange(module, text)
    if not changed:
        raise DoesNotApply(f"{mutant.name} changes no function")


def _exchange(module: ModuleType, text: str) -> int:
    """Give the module's functions the code that they have in `text`; returns how many that changed."""
    fresh = ModuleType(module.__name__)
    fresh.__dict__.update({"__file__": module.__file__, "__package__": module.__package__})
    kept = sys.modules[module.__name__]
    sys.modules[module.__name__] = fresh  # dataclasses look their module up by its name
    try:
        exec(compile(text, str(module.__file__), "exec", dont_inherit=True), fresh.__dict__)  # noqa: S102
    finally:
        sys.modules[module.__name__] = kept
    changed = 0
    for name, value in vars(fresh).items():
        if name not in vars(module):
            setattr(module, name, value)
    old = dict(_functions(module))
    for name, function in _functions(fresh):
        before = old.get(name)
        if before is not None and before.__code__ != function.__code__:
            before.__code__ = function.__code__
            changed += 1
    return changed


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that a module defines, undecorated, by their qualified names."""
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).values() if inspect.isclass(value) else [value]
        for member in members:
            member = getattr(member, "__func__", member)
            plain = inspect.unwrap(member) if callable(member) else member
            if isinstance(plain, FunctionType) and plain.__module__ == module.__name__:
                yield plain.__qualname__, plain


def _serve() -> None:
    import django

    django.setup()
    from tests.mutants import scenes

    assert scenes.SCENES
    for line in sys.stdin:
        order = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _play(order, writing)
        os.close(writing)
        print(json.dumps(_answer(pid, reading, order["patience_s"])), flush=True)  # noqa: T201


def _play(order: dict[str, Any], writing: int) -> None:
    """In the child: put the bug in, play, tell, and never return."""
    answer: dict[str, Any]
    try:
        from django.db import connections

        from tests.mutants import scenes

        for settings in connections.settings.values():
            settings["NAME"] = order["database"]
        owner = urlsplit(os.environ["DATABASE_OWNER_URL"])
        os.environ["DATABASE_OWNER_URL"] = owner._replace(path=f"/{order['database']}").geturl()
        if order["mutant"] != "none":
            put_in(next(mutant for mutant in MUTANTS if mutant.name == order["mutant"]))
        answer = {"wrong": scenes.play(order["scene"]), "broken": False}
    except BaseException as error:  # noqa: BLE001  whatever broke, nothing was found
        sys.excepthook(*sys.exc_info())
        answer = {"wrong": [f"broke: {error!r}"[:500]], "broken": True}
    os.write(writing, json.dumps(answer).encode()[:60_000])
    sys.stderr.flush()
    os._exit(0)


def _answer(pid: int, reading: int, patience_s: float) -> dict[str, Any]:
    with os.fdopen(reading, "rb") as pipe:
        if not select.select([pipe], [], [], patience_s)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"wrong": [f"did not end within {patience_s:.0f} s"], "broken": False}
        content = pipe.read()
    os.waitpid(pid, 0)
    try:
        answer: dict[str, Any] = json.loads(content)
    except ValueError:
        return {"wrong": ["the process is gone without a word"], "broken": True}
    return answer


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        listed = [{"name": m.name, "says": m.says, "id": m.id, "scene": m.scene} for m in MUTANTS]
        print(json.dumps(listed))  # noqa: T201
    else:
        _serve()
