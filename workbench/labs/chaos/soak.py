"""`manage.py chaos soak --seed S --minutes M`: everything is ended again and again while work goes on; then judged."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from redis import Redis
from redis.exceptions import RedisError

from workbench.labs import cast, story
from workbench.labs.arena import Arena
from workbench.labs.chaos.agents import Agents
from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.people import Lead, Person
from workbench.labs.chaos.report import Report
from workbench.labs.chaos.schedule import KILLS, Fault, schedule
from workbench.labs.chaos.traffic import Log
from workbench.labs.chaos.watch import Watch
from workbench.labs.checker.gather import gather
from workbench.labs.checker.invariants import judge

SETTLE_S = 180.0
"""Within this time after the last heal everything is at its end or with a person (V11)."""

TELL_EVERY_S = 10.0
FREEZE_EVERY_S, FREEZE_S = 20.0, 1.5
IN_FLIGHT = 16
STARTERS = 4


class Soak:
    """One soak in an arena of its own."""

    def __init__(self, arena: Arena, *, seed: int, seconds: float, say: Say) -> None:
        self._arena, self._seed, self._seconds, self._say = arena, seed, seconds, say
        self.kills: Counter[str] = Counter()
        self._log = Log()
        self._watch = Watch(arena.connection_url_owner)
        self._lead = Lead()
        self._over = threading.Event()
        self._seen: list[tuple[str, int]] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    def run(self) -> Report:
        """Everything, from the first run to the verdict."""
        story.publish(self._say)
        cast.load()
        arena, seed = self._arena, self._seed
        arena.wait_until_ready()
        agents = Agents(
            seed=seed, web_url=arena.web_url, outside=arena.outside, log=self._log, in_flight=IN_FLIGHT
        )
        doors = {"maya": arena.web_url, "lin": arena.web_url, "jonas": "", "priya": ""}
        people = [
            Person(
                one,
                seed=seed,
                web_url=doors[one.username],
                outside=arena.outside,
                log=self._log,
                over=self._over,
            )
            for one in cast.CAST
            if one.username in doors
        ]
        work = [*[agents.run] * STARTERS, *[one.run for one in people], self._watch.run, self._listen]
        threads = [threading.Thread(target=one, name=f"soak-{n}") for n, one in enumerate(work)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        try:
            self._disturb(began)
            agents.stopping.set()
            self._heal()
            for thread in threads[:STARTERS]:
                thread.join(90)
            self._arena.outside.behave()
            settled_s = self._settle()
        finally:
            agents.stopping.set()
            agents.closing.set()
            self._over.set()
            self._watch.stopping.set()
            for thread in threads:
                thread.join(90)
        histories = gather(
            outside=arena.outside, owner_url=arena.connection_url_owner, said=self._log.all(), seen=self._seen
        )
        return Report(
            seed=seed,
            seconds=self._seconds,
            kills=dict(self.kills),
            histories=histories,
            found=judge(histories),
            figures=self._watch.figures,
            settled_s=settled_s,
        )

    # --- Faults

    def _disturb(self, began: float) -> None:
        """Play the schedule; between two faults tend what has ended and tell how it goes."""
        waiting = list(schedule(self._seed, self._seconds))
        tell, freeze = began + TELL_EVERY_S, began + FREEZE_EVERY_S
        while (now := time.monotonic()) < began + self._seconds:
            while waiting and waiting[0].at <= now - began:
                self._strike(waiting.pop(0))
                self._pending()
            self._pending()
            self._arena.tend()
            if now >= freeze:
                freeze = now + FREEZE_EVERY_S
                if self._lead.freeze():
                    self._after(FREEZE_S, self._thaw)
            if now >= tell:
                tell = now + TELL_EVERY_S
                self._tell(now - began)
            time.sleep(0.05)

    def _strike(self, fault: Fault) -> None:
        arena = self._arena
        self.kills[fault.kind] += 1
        match fault.kind:
            case "database":
                arena.kill_database()
                self._after(fault.down_s, self._database_back)
            case "broker":
                arena.kill_broker()
                self._watch.emptied()
                self._after(fault.down_s, self._broker_back)
            case "empty":
                with contextlib.suppress(RedisError):
                    arena.empty_broker()
                self._watch.emptied()
            case "child":
                self._kill_a_child(fault)
            case "pause":
                name = self._pick(fault, "worker")
                arena.pause(name)
                self._watch.killed(arena.children_of(name))
                self._after(fault.down_s, lambda: arena.wake(name))
            case kind:
                name = self._pick(fault, kind)
                doomed = (
                    [arena.pid(name), *(arena.children_of(name) if fault.group else [])]
                    if arena.runs(name)
                    else []
                )
                arena.kill(name, group=fault.group)
                self._watch.killed(doomed)
                arena.start(name)

    def _kill_a_child(self, fault: Fault) -> None:
        children = [pid for name in self._arena.names("worker") for pid in self._arena.children_of(name)]
        if not children:
            self.kills["child"] -= 1
            return
        pid = children[int(fault.pick * len(children))]
        with contextlib.suppress(ProcessLookupError):
            self._arena.kill_child(pid)
        self._watch.killed([pid])

    def _pick(self, fault: Fault, kind: str) -> str:
        names = self._arena.names(kind)
        return names[int(fault.pick * len(names))]

    def _database_back(self) -> None:
        self._arena.start_database()
        self._watch.covers_all()

    def _broker_back(self) -> None:
        self._arena.start_broker()
        self._watch.covers_all()

    def _thaw(self) -> None:
        """Lift the freeze, however long the database is away: nobody could go on with what it held back."""
        if self._lead.unfreeze():
            self._watch.covers_all()
        else:
            self._after(0.5, self._thaw)

    def _after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._number), do))

    def _pending(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()

    # --- The end

    def _heal(self) -> None:
        self._say("the last fault is over; everything is started again and the world behaves")
        for _, _, do in sorted(self._later):
            do()
        for name in self._arena.names():
            self._arena.wake(name)
            self._arena.start(name)
        for _ in range(20):
            if self._lead.unfreeze():
                break
            time.sleep(0.5)
        self._watch.covers_all()

    def _settle(self) -> float:
        """Wait until nothing moves any more; returns the seconds that took."""
        began, tell, quiet = time.monotonic(), time.monotonic() + TELL_EVERY_S, 0
        people_until = began + min(20.0, self._seconds / 4)
        while time.monotonic() - began < SETTLE_S and quiet < 3:
            self._arena.tend()
            if time.monotonic() >= people_until:
                self._over.set()
            quiet = quiet + 1 if self._over.is_set() and not self._moving() else 0
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
        struck = " ".join(f"{kind} {self.kills[kind]}" for kind in sorted(self.kills))
        total = sum(self.kills[kind] for kind in KILLS)
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
