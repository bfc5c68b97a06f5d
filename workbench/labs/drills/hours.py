"""The drill's clock: the database's, put forward over every wait that nothing but time ends.

A jump stands for time in which whoever lives has gone on beating: the leases of living workers move with it, those of
dead and of stopped ones do not.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import psycopg


class Hours:
    """Drill time in seconds. `began` is set when the runs start."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url
        self._jumps: list[tuple[float, float]] = []
        self._ahead = 0.0
        self.began = time.time()

    def begin(self) -> None:
        """From here on the drill's clock counts."""
        self.began = time.time() + self._ahead

    def now(self) -> float:
        """Drill time."""
        return time.time() + self._ahead - self.began

    def of_wall(self, wall: float) -> float:
        """The drill time at a moment of the wall clock."""
        ahead = sum(seconds for at, seconds in self._jumps if at <= wall)
        return wall + ahead - self.began

    def of_database(self, moment: float) -> float:
        """The drill time at a moment of the database's clock, given as seconds."""
        return moment - self.began

    def wall_of(self, drill_time: float) -> float:
        """The moment of the wall clock at a drill time."""
        moment = drill_time + self.began
        for at, seconds in reversed(self._jumps):
            before = sum(earlier for when, earlier in self._jumps if when < at)
            if moment >= at + before + seconds:
                return moment - before - seconds
            if moment >= at + before:
                return at
        return moment

    def set_to(self, moment: datetime) -> None:
        """Have the clock show this, earlier or later than now. Only before anything has happened."""
        self._move(moment.timestamp() - time.time() - self._ahead)

    def jump(self, seconds: float) -> None:
        """Put the clock forward; whoever lives has beaten meanwhile."""
        if seconds > 0:
            self._move(seconds)

    def _move(self, seconds: float) -> None:
        later = timedelta(seconds=seconds)
        with psycopg.connect(self._owner_url) as connection:
            rows = connection.execute("SELECT id, place FROM sagas_worker WHERE ended_at IS NULL").fetchall()
            living = [owner for owner, place in rows if lives(str(place))]
            connection.execute("UPDATE test_clock.ahead SET ahead = ahead + %s", [later])
            connection.execute(
                "UPDATE sagas_worker SET lease_until = lease_until + %s WHERE id = ANY(%s)", [later, living]
            )
        self._jumps.append((time.time(), seconds))
        self._ahead += seconds


def lives(place: str) -> bool:
    """Whether the process behind an incarnation (`host:pid`) runs, and was not stopped."""
    with suppress(OSError):
        stat = Path(f"/proc/{place.rpartition(':')[2]}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] not in ("T", "t", "Z", "X")
    return False
