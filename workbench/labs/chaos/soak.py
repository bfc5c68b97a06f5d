"""`manage.py chaos soak --seed S --minutes M`: everything is ended again and again while work goes on; then judged."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from redis import Redis
from redis.exceptions import RedisError

from workbench.labs import cast, story
from workbench.labs.arena import Arena
from workbench.labs.chaos import confirmed
from workbench.labs.chaos.agents import Agents
from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.people import Lead, Person
from workbench.labs.chaos.report import Report
from workbench.labs.chaos.schedule import KILLS, schedule
from workbench.labs.chaos.striker import Striker
from workbench.labs.chaos.traffic import Log, forget_connection
from workbench.labs.chaos.watch import Watch
from workbench.labs.checker.gather import gather
from workbench.labs.checker.invariants import judge

SETTLE_S = 180.0
"""Within this time after the last heal everything is at its end or with a person (V11)."""

LATEST_S = 60.0
"""So many seconds after the last one was due nothing more is struck: what is left then, this machine did not allow."""

TELL_EVERY_S = 10.0
FREEZE_EVERY_S, FREEZE_S = 20.0, 1.5
IN_FLIGHT = 16
STARTERS = 4


class Soak:
    """One soak in an arena of its own."""

    def __init__(self, arena: Arena, *, seed: int, seconds: float, say: Say) -> None:
        self._arena, self._seed, self._seconds, self._say = arena, seed, seconds, say
        self._log = Log()
        self._watch = Watch(arena.connection_url_owner)
        self._striker = Striker(arena, self._watch, schedule(seed, seconds))
        self._lead = Lead()
        self._over = threading.Event()
        self._calm = threading.Event()
        self._seen: list[tuple[str, int]] = []

    def run(self) -> Report:
        """Everything, from the first run to the verdict."""
        story.publish(self._say)
        confirmed.publish()
        cast.load()
        arena, seed = self._arena, self._seed
        arena.wait_until_ready()
        agents = Agents(
            seed=seed, web_url=arena.web_url, outside=arena.outside, log=self._log, in_flight=IN_FLIGHT
        )
        # Three share the cases, two of them by HTTP; the last one signs.
        doors = {"maya": arena.web_url, "lin": arena.web_url, "jonas": "", "priya": ""}
        people = [
            Person(
                one,
                seed=seed,
                web_url=doors[one.username],
                outside=arena.outside,
                log=self._log,
                over=self._over,
                place=list(doors).index(one.username),
                people=len(doors) - 1,
            )
            for one in cast.CAST
            if one.username in doors
        ]
        work = [*[agents.run] * STARTERS, *[one.run for one in people], self._watch.run, self._listen]
        threads = [threading.Thread(target=one, name=f"soak-{n}") for n, one in enumerate(work)]
        for thread in threads:
            thread.start()
        freezer = threading.Thread(target=self._freeze, name="soak-freezer")
        freezer.start()
        began = time.monotonic()
        try:
            self._disturb(began)
            agents.stopping.set()
            self._heal(freezer)
            for thread in threads[:STARTERS]:
                thread.join(90)
            self._arena.outside.behave()
            settled_s = self._settle(threads[STARTERS : STARTERS + len(people)])
        finally:
            self._calm.set()
            agents.stopping.set()
            agents.closing.set()
            self._over.set()
            self._watch.stopping.set()
            for thread in threads:
                thread.join(90)
        forget_connection()  # it has died with the server, more than once
        histories = gather(
            outside=arena.outside, owner_url=arena.connection_url_owner, said=self._log.all(), seen=self._seen
        )
        return Report(
            seed=seed,
            seconds=self._seconds,
            kills=dict(self._striker.done),
            histories=histories,
            found=judge(histories),
            figures=self._watch.figures,
            settled_s=settled_s,
        )

    # --- Faults

    def _disturb(self, began: float) -> None:
        """Play the schedule to its end; between two faults tend what has ended and tell how it goes."""
        tell = began + TELL_EVERY_S
        end = began + self._seconds
        while (now := time.monotonic()) < end or (self._striker.left and now < end + LATEST_S):
            self._striker.strike(now - began)
            self._arena.tend()
            if now >= tell:
                tell = now + TELL_EVERY_S
                self._tell(now - began)
            time.sleep(0.05)

    def _freeze(self) -> None:
        """Freeze for a moment, again and again, until the faults are over; leaves nothing frozen.

        A thread of its own: what it waits for may be held by a process that the main thread has stopped.
        """
        while not self._calm.wait(FREEZE_EVERY_S):
            if not self._lead.freeze():
                continue
            self._watch.struck("freeze")
            self._calm.wait(FREEZE_S)
            # However long the database is away: nobody could go on with what is held back.
            while not (self._lead.unfreeze() or self._watch.stopping.wait(0.5)):
                pass
            self._watch.struck("freeze lifted")
            self._watch.covers_all()

    # --- The end

    def _heal(self, freezer: threading.Thread) -> None:
        self._say("the last fault is over; everything is started again and the world behaves")
        self._striker.heal()
        self._calm.set()
        freezer.join()
        self._watch.covers_all()

    def _settle(self, people: Sequence[threading.Thread]) -> float:
        """Wait until nobody acts and nothing moves any more; returns the seconds that took."""
        began, tell, quiet = time.monotonic(), time.monotonic() + TELL_EVERY_S, 0
        people_until = began + min(20.0, self._seconds / 4)
        while time.monotonic() - began < SETTLE_S and quiet < 3:
            self._arena.tend()
            if time.monotonic() >= people_until:
                self._over.set()
            # Somebody may still be at their last command when all else is at rest.
            acting = not self._over.is_set() or any(one.is_alive() for one in people)
            quiet = 0 if acting or self._moving() else quiet + 1
            if time.monotonic() >= tell:
                tell = time.monotonic() + TELL_EVERY_S
                self._tell(self._seconds + time.monotonic() - began)
            time.sleep(0.3)
        return time.monotonic() - began

    def _moving(self) -> int:
        rows = self._watch.ask(
            "SELECT (SELECT count(*) FROM sagas_run WHERE owner <> '' OR (finished_at IS NULL "
            "AND state <> 'awaiting_approval' AND id NOT IN "
            "(SELECT run_id FROM sagas_handoff WHERE state <> 'resolved'))) "
            "+ (SELECT count(*) FROM sagas_outbox WHERE published_at IS NULL)"
        )
        return int(rows[0][0]) if rows else 1

    def _listen(self) -> None:
        """Read the product's events like any consumer would, whatever becomes of the broker."""
        url, last = self._arena.servers.environment["REDIS_URL"], "0"
        while not self._watch.stopping.is_set():
            try:
                with contextlib.closing(
                    Redis.from_url(url, socket_timeout=2.0, decode_responses=True)
                ) as client:
                    answer: Any = client.xread({"amends:events": last}, count=500, block=300)
            except (RedisError, OSError):
                time.sleep(0.1)
                continue
            for _, messages in answer or ():
                for last, fields in messages:  # noqa: B007  where the next read goes on
                    ref, _, seq = fields["id"].rpartition(":")
                    self._seen.append((ref, int(seq)))

    def _tell(self, seconds: float) -> None:
        said = Counter(one.outcome for one in self._log.all())
        done = self._striker.done
        struck = " ".join(f"{kind} {done[kind]}" for kind in sorted(done))
        total = sum(done[kind] for kind in KILLS)
        self._say(f"[{seconds:4.0f} s] {total} kills ({struck}); operations {dict(said)}")


@contextlib.contextmanager
def _arena() -> Iterator[Arena]:
    with Arena(workers=2, web=2, sweeps=2, relays=1, concurrency=1) as arena:
        yield arena


def arguments(parser: CommandParser) -> None:
    """Seed, length, and where the report goes."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--json", type=Path, help="where the report goes")


def run(options: dict[str, Any], say: Say) -> bool:
    """The command: progress, what is wrong, the figures, the verdict."""
    with _arena() as arena:
        report = Soak(arena, seed=options["seed"], seconds=options["minutes"] * 60, say=say).run()
        if not report.holds:
            for name in arena.names():
                tail = arena.log(name).splitlines()[-15:]
                say("\n".join([f"--- {name}", *tail]))
    for line in report.lines():
        say(line)
    if options["json"]:
        options["json"].write_text(json.dumps(report.document(), indent=1, default=str) + "\n")
    say(report.verdict())
    return report.holds


DOOR = Door(help="kill everything again and again while runs and commands flow", arguments=arguments, run=run)
