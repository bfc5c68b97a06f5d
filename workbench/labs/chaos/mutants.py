"""`manage.py chaos mutants`: every seeded bug is put into a process of its own, and the checker must find it there.

The bugs and the scenes are files of the tests; the product has no branch for them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg
from django.core.management.base import CommandParser
from django.db import connections
from psycopg import sql

from sagas.faultpoints import VARIABLE
from workbench.labs import cast, story
from workbench.labs.arena import Arena
from workbench.labs.chaos.door import Door, Say
from workbench.labs.embedded import CLONE

BOOT = (sys.executable, "-m", "tests.mutants.boot")
PATIENCE_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Played:
    """One scene, played. `wrong` is what was found; a process that broke by itself has found nothing."""

    wrong: tuple[str, ...]
    seconds: float
    broken: bool = False

    @property
    def caught(self) -> bool:
        """Whether the scene or an invariant found something."""
        return bool(self.wrong) and not self.broken


class Bench:
    """Plays scenes, each in a process and on a copy of the database of its own."""

    def __init__(self, arena: Arena, say: Say) -> None:
        self._arena = arena
        self._count = 0
        # What every scene finds: contracts, workflows, people, and a clock that can be put forward.
        story.publish(say)
        cast.load()
        assert arena.clock is not None  # noqa: S101  asking for it installs it
        connections.close_all()

    def __enter__(self) -> Self:
        environment = {**os.environ, **self._arena.environment, VARIABLE: "[]"}
        self._process = subprocess.Popen(
            BOOT, cwd=CLONE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()

    def play(self, mutant: str, scene: str) -> Played:
        """Play one scene with one bug in the product ("none" = without)."""
        self._arena.outside.reset()
        began = time.monotonic()
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None and taken is not None  # noqa: S101, PT018  they were asked for
        with self._database() as name:
            order = {"mutant": mutant, "scene": scene, "database": name, "patience_s": PATIENCE_S}
            print(json.dumps(order), file=given, flush=True)
            answer = json.loads(taken.readline())
        seconds = time.monotonic() - began
        return Played(wrong=tuple(answer["wrong"]), seconds=seconds, broken=answer["broken"])

    @contextmanager
    def _database(self) -> Iterator[str]:
        self._count += 1
        owner = self._arena.connection_url_owner
        template = sql.Identifier(urlsplit(owner).path.lstrip("/"))
        name = sql.Identifier(copy := f"scene_{self._count}")
        maintenance = urlsplit(owner)._replace(path="/postgres").geturl()
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, template))
        try:
            yield copy
        finally:
            with psycopg.connect(maintenance, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def catalogue(only: str) -> list[dict[str, str]]:
    """The seeded bugs, those alone whose name or scene contains `only`."""
    listed = subprocess.run([*BOOT, "--list"], cwd=CLONE, capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(listed.stdout)
    return [one for one in found if only in one["name"] or only in one["scene"]]


def arguments(parser: CommandParser) -> None:
    """Which bugs, and where the report goes."""
    parser.add_argument("--only", default="", help="a part of the name of a bug or of a scene")
    parser.add_argument("--json", type=Path, help="where the report goes")


def run(options: dict[str, Any], say: Say) -> bool:
    """The command: first every scene without a bug, which must find nothing; then each bug in its scene."""
    began = time.monotonic()
    mutants = catalogue(options["only"])
    with Arena(workers=0, sweeps=0, relays=0) as arena:
        sound: dict[str, Played] = {}
        caught: dict[str, Played] = {}
        with Bench(arena, say) as bench:
            for scene in dict.fromkeys(one["scene"] for one in mutants):
                sound[scene] = bench.play("none", scene)
                say(_line("without a bug", scene, sound[scene], good=not sound[scene].wrong))
            for one in mutants:
                caught[one["name"]] = played = bench.play(one["name"], one["scene"])
                say(_line(f"{one['id']} {one['name']}", one["scene"], played, good=played.caught))
    missed = [name for name, played in caught.items() if not played.caught]
    false = [scene for scene, played in sound.items() if played.wrong]
    if options["json"]:
        document = {
            "mutants": [{**one, "wrong": caught[one["name"]].wrong[:20]} for one in mutants],
            "sound": {scene: played.wrong for scene, played in sound.items()},
        }
        options["json"].write_text(json.dumps(document, indent=1) + "\n")
    holds = not missed and not false and bool(mutants)
    for name in missed:
        says = next(one["says"] for one in mutants if one["name"] == name)
        say(f"NOT CAUGHT {name}: {says}")
    say(
        f"mutants {len(mutants)} caught {len(mutants) - len(missed)} scenes {len(sound)} false alarms {len(false)} "
        f"in {time.monotonic() - began:.0f} s: {'holds' if holds else 'DOES NOT HOLD'}"
    )
    return holds


def _line(what: str, scene: str, played: Played, *, good: bool) -> str:
    first = f": {played.wrong[0][:150]}" if played.wrong else ""
    return f"{'ok ' if good else 'NOT'} {what} ({scene}, {played.seconds:.1f} s){first}"


DOOR = Door(help="put known bugs into the product and see that each is found", arguments=arguments, run=run)
