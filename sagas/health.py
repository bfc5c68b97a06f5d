"""Whether the engine is alive, as one frozen value for probes. Reads few rows; writes nothing, waits for nobody."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from redis.exceptions import RedisError

from sagas.alarms import Alarm, in_force
from sagas.ledger.ears import Hearing, hearing
from sagas.relay import broker, lag_s
from tools.contract import Limits

EVICTS_NOTHING = "noeviction"


@dataclass(frozen=True, kw_only=True)
class Health:
    """The engine as its tables show it, in seconds.

    `sweep_seen_s` is how long ago the sweep last renewed its lease, None when no sweep runs. `workers_alive` counts
    the incarnations that drain just now: 0 is normal while nothing is due. `oldest_due_s` is how long the run that
    was due first has waited. `hearing` says whether workers that are connected take any work.
    """

    sweep_seen_s: float | None
    workers_alive: int
    outbox_lag_s: float
    oldest_due_s: float
    hearing: Hearing
    alarms: tuple[Alarm, ...]


def health() -> Health:
    """What the tables say now. Raises `DatabaseError` without a database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT extract(epoch FROM now_() - max(beat_at)) FROM sagas_worker "
            "        WHERE kind = 'sweep' AND ended_at IS NULL), "
            "       (SELECT count(*) FROM sagas_worker WHERE ended_at IS NULL AND lease_until > now_()), "
            "       (SELECT coalesce(extract(epoch FROM now_() - min(due_at)), 0) FROM sagas_run "
            "        WHERE due_at <= now_())"
        )
        seen, alive, due = cursor.fetchone()
    return Health(
        sweep_seen_s=None if seen is None else max(float(seen), 0.0),
        workers_alive=int(alive),
        outbox_lag_s=lag_s(),
        oldest_due_s=float(due),
        hearing=hearing(),
        alarms=in_force(),
    )


def owns_tables() -> bool:
    """Whether the role that processes work as could change the schema or step around its guards.

    Raises `DatabaseError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_or(r.rolsuper OR pg_has_role(current_user, c.relowner, 'MEMBER')) "
            "FROM pg_class c, pg_roles r WHERE c.relname LIKE 'sagas\\_%%' AND c.relkind = 'r' "
            "AND c.relnamespace = current_schema()::regnamespace AND r.rolname = current_user",
            [],
        )
        return bool(cursor.fetchone()[0])


def longest_tool_limit_s() -> float:
    """Seconds of the longest call that any published contract allows; 0 when none is published.

    Raises `DatabaseError`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(max(coalesce((document #>> '{limits,total_s}')::float, %s)), 0) FROM sagas_contractversion",
            [Limits().total_s],
        )
        return float(cursor.fetchone()[0])


def broker_policy() -> str | None:
    """What the broker does when its memory is full; None when it cannot be reached."""
    try:
        with broker() as client:
            said = client.info("memory")
    except (RedisError, OSError):
        return None
    return str(said.get("maxmemory_policy", ""))


def hard_limit_s() -> float:
    """Seconds after which Celery ends a task that hangs."""
    return float(settings.CELERY_TASK_TIME_LIMIT)
