"""Whether this installation is fit to work: one value per check, for probes and for the command line.

Writes nothing, waits for nobody longer than a connection takes, and names no address and no secret.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from sagas import api

SWEEP_SILENT_S = 15.0
"""The sweep renews its lease every second; after this long it is taken for gone."""
UNHEARD_S = 60.0
"""As long as bells may be rung that nobody hears: four of them. The alarm `worker.deaf` says the same."""
OUTBOX_LAG_S = 60.0
"""As long as events may wait for the relay; the alarm `outbox.lagging` says the same."""
EVICTS_NOTHING = "noeviction"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: whether it holds, why not, and what was measured."""

    ok: bool
    detail: str = ""
    measured: dict[str, float | None] = field(default_factory=dict)


type Engine = Callable[[], api.Health]


def database(engine: Engine) -> Check:
    """PostgreSQL answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return Check(ok=True)


def migrations(engine: Engine) -> Check:
    """Every migration of this code is applied, and processes work as a role that its guards bind."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return Check(ok=False, detail=f"{len(missing)} migrations are not applied")
    if api.owns_tables():
        return Check(ok=False, detail="DATABASE_URL names a role that may change the schema")
    return Check(ok=True)


def broker(engine: Engine) -> Check:
    """The broker answers and evicts nothing."""
    policy = api.broker_policy()
    if policy is None:
        return Check(ok=False, detail="the broker does not answer")
    evicts = policy != EVICTS_NOTHING
    return Check(ok=not evicts, detail=f"its maxmemory-policy is {policy}" if evicts else "")


def sweep(engine: Engine) -> Check:
    """A sweep renewed its lease a moment ago."""
    seen = engine().sweep_seen_s
    if seen is None:
        return Check(ok=False, detail="no sweep runs", measured={"seen_s": None})
    late = seen > SWEEP_SILENT_S
    return Check(
        ok=not late, detail="the sweep is silent" if late else "", measured={"seen_s": round(seen, 1)}
    )


def outbox(engine: Engine) -> Check:
    """Events leave: the oldest waiting one is young."""
    lag = engine().outbox_lag_s
    late = lag > OUTBOX_LAG_S
    return Check(
        ok=not late, detail="events wait for the relay" if late else "", measured={"lag_s": round(lag, 1)}
    )


def workers(engine: Engine) -> Check:
    """Bells that the broker takes are heard by somebody: a worker that is connected may be deaf all the same."""
    hearing = engine().hearing
    deaf = hearing.unheard_s > UNHEARD_S
    return Check(
        ok=not deaf,
        detail="bells are rung and no worker takes one" if deaf else "",
        measured={"unheard_s": round(hearing.unheard_s, 1), "ears": float(len(hearing.ears))},
    )


CHECKS: dict[str, Callable[[Engine], Check]] = {
    "database": database,
    "migrations": migrations,
    "broker": broker,
    "sweep": sweep,
    "workers": workers,
    "outbox": outbox,
}


def look(names: Collection[str] = tuple(CHECKS)) -> dict[str, Check]:
    """The checks named, in their order. Never raises: what cannot be asked does not hold."""
    engine = cache(api.health)
    return {name: _asked(ask, engine) for name, ask in CHECKS.items() if name in names}


def _asked(ask: Callable[[Engine], Check], engine: Engine) -> Check:
    try:
        return ask(engine)
    except DatabaseError:
        connection.close()
        return Check(ok=False, detail="the database does not answer, or not as this code needs it")
