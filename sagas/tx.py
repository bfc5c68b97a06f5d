"""Transactions: the durable one that every write runs in, and the rule that no tool is called inside one.

"Rollback" in this product only ever means what happens to one of these.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, OperationalError, connection, transaction

from sagas import faultpoints
from sagas.rows import Statement, send

FREEZE_LOCK = 0x414D454E
"""Key of the advisory lock that freezes take exclusively and every commit of `sent` takes shared."""

SILENT_FOR = "5s"
"""As PostgreSQL writes it. No step of a run thinks for so long between two statements, however large the run."""

_RETRYABLE = frozenset({"40P01", "40001", "55P03"})


class InsideTransaction(RuntimeError):
    """A tool was about to be called inside a transaction; move the call before or after it (law 3)."""


def outside_transaction() -> None:
    """Raise `InsideTransaction` if a transaction is open: tools are only called outside of one."""
    if connection.in_atomic_block:
        raise InsideTransaction(InsideTransaction.__doc__)


@contextmanager
def durable() -> Iterator[None]:
    """The transaction that a write runs in: outermost, committed when the block ends without an error."""
    faultpoints.begin()
    with transaction.atomic(durable=True):
        yield
        faultpoints.before_commit(connection.connection)
    faultpoints.after_commit()


@contextmanager
def soon() -> Iterator[None]:
    """In this transaction wait for no lock longer than half a second: whoever looks again and again comes back.

    A process that was stopped in the middle of a transaction holds its locks for seconds, and keeps nothing else.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", ["500ms"])
    yield


FREEZE_SHARED = Statement(
    "SELECT set_config('idle_in_transaction_session_timeout', %s, true), pg_advisory_xact_lock_shared(%s)",
    (SILENT_FOR, FREEZE_LOCK),
)
"""Waits for a freeze that is being made, and keeps the next one out until this transaction ends.

A process that was stopped with this lock keeps out whoever freezes, and behind them everybody: PostgreSQL ends a
transaction that has it and says nothing for `SILENT_FOR`.
"""


def lock_freeze_shared() -> None:
    """`FREEZE_SHARED` by itself."""
    send(FREEZE_SHARED)


def lock_freeze() -> None:
    """Keep every commit of `sent` out until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [FREEZE_LOCK])


def held_up(error: DatabaseError) -> bool:
    """Whether somebody else held what was wanted: a lock, not the database, is what could not be had."""
    return getattr(error.__cause__, "sqlstate", None) in _RETRYABLE


def retrying[T](write: Callable[[], T], *, tries: int = 6) -> T:
    """Run a write again after a deadlock, a lock timeout or a serialization failure: the write, never a call.

    Raises the last error when `tries` are used up.
    """
    for attempt in range(1, tries + 1):
        try:
            return write()
        except OperationalError as error:
            if not held_up(error) or attempt == tries:
                raise
            time.sleep(random.uniform(0.01, 0.05) * attempt)  # noqa: S311  spread, not secrecy
    raise AssertionError("unreachable")
