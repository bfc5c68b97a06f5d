"""The canary: the sweep rings although nothing is due, and whoever takes a bell off the broker leaves a mark.

A worker that answers pings, holds its connection and takes no message looks alive from everywhere else.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

from django.db import connection

RING_EVERY_S = 15.0
_MARK_EVERY_S = 5.0
_RINGER = "the sweep"

_marked = 0.0


def place_of(process: int) -> str:
    """A worker by its host and its first process; the children that it forks are ears of the same head."""
    return f"{socket.gethostname()}:{process}"


def ring_is_due() -> bool:
    """Whether no canary was rung for a while, by the database's clock: one for all sweeps."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT NOT EXISTS (SELECT 1 FROM sagas_ear WHERE place = %s "
            "AND rung_at > now_() - make_interval(secs => %s))",
            [_RINGER, RING_EVERY_S],
        )
        return bool(cursor.fetchone()[0])


def rang() -> None:
    """Note that the broker has taken a canary. After a pause without any, silence counts from this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_ear (place, rung_at) VALUES (%s, now_()) "
            "ON CONFLICT (place) DO UPDATE SET rung_at = excluded.rung_at, since = CASE "
            "WHEN sagas_ear.rung_at < excluded.rung_at - interval '60 seconds' THEN excluded.rung_at "
            "ELSE sagas_ear.since END",
            [_RINGER],
        )


def heard() -> None:
    """Note that this worker has taken a bell, or is busy with what one rang for; at most once in five seconds."""
    global _marked
    if time.monotonic() - _marked < _MARK_EVERY_S:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_ear (place, heard_at) VALUES (%s, now_()) "
            "ON CONFLICT (place) DO UPDATE SET heard_at = excluded.heard_at, left_at = NULL",
            [place_of(os.getppid())],
        )
    _marked = time.monotonic()


def left(where: str) -> None:
    """Note that a worker has ended in good order: it is not expected to hear anything any more."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sagas_ear SET left_at = now_() WHERE place = %s", [where])


@dataclass(frozen=True, kw_only=True)
class Hearing:
    """What the canary says, in seconds. `rung_s`: since the broker took the last one, None when none was ever rung.

    `unheard_s` is how long bells have been rung that nobody took, 0 while somebody does. `ears` are the workers of the
    last quarter of an hour and how long ago each heard one.
    """

    rung_s: float | None
    unheard_s: float
    ears: tuple[tuple[str, float], ...]


def hearing() -> Hearing:
    """What the canary says now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place, extract(epoch FROM now_() - heard_at) FROM sagas_ear "
            "WHERE heard_at > now_() - interval '15 minutes' AND left_at IS NULL ORDER BY place"
        )
        ears = tuple((row[0], max(float(row[1]), 0.0)) for row in cursor.fetchall())
    rung, unheard = _rung()
    return Hearing(rung_s=rung, unheard_s=unheard, ears=ears)


def silence_s() -> float:
    """For how many seconds no bell was heard; 0 while the spacing of rings and marks explains it."""
    __, unheard = _rung()
    return unheard if unheard > RING_EVERY_S + _MARK_EVERY_S else 0.0


def _rung() -> tuple[float | None, float]:
    """Seconds since the last canary, None when there was none, and how long none was heard."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM now_() - max(rung_at)), "
            "extract(epoch FROM max(rung_at) - greatest(max(heard_at), min(since) FILTER (WHERE rung_at IS NOT NULL))) "
            "FROM sagas_ear"
        )
        rung, unheard = cursor.fetchone()
    return None if rung is None else max(float(rung), 0.0), max(float(unheard or 0.0), 0.0)
