"""The database's clock, which tests and drills may put forward so that nobody has to wait for a due time.

Must not be used on a database that anybody keeps: it replaces `now_()`, the one clock of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql


class Clock:
    """The clock of one database, seen as its owner."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    @contextmanager
    def _as_owner(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._owner_url, autocommit=True) as connection:
            yield connection

    def install(self, app_role: str) -> None:
        """Have `now_()` add what the clock has been put forward by."""
        role = sql.Identifier(app_role)
        with self._as_owner() as connection:
            connection.execute("CREATE SCHEMA test_clock")
            connection.execute(
                "CREATE TABLE test_clock.ahead (ahead interval NOT NULL, stands_at timestamptz)"
            )
            connection.execute("INSERT INTO test_clock.ahead VALUES (interval '0', NULL)")
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA test_clock TO {}").format(role))
            connection.execute(sql.SQL("GRANT SELECT ON test_clock.ahead TO {}").format(role))
            connection.execute(
                "CREATE OR REPLACE FUNCTION now_() RETURNS timestamptz LANGUAGE sql VOLATILE "
                "AS 'SELECT coalesce(stands_at, clock_timestamp()) + ahead FROM test_clock.ahead'"
            )

    def put_forward(self, seconds: float) -> None:
        """From now on `now_()` is later by so many seconds more."""
        with self._as_owner() as connection:
            connection.execute("UPDATE test_clock.ahead SET ahead = ahead + %s", [timedelta(seconds=seconds)])

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """For the length of a block it gets no later by itself: what will be due later is not due while it lasts."""
        with self._as_owner() as connection:
            connection.execute("UPDATE test_clock.ahead SET stands_at = clock_timestamp()")
            try:
                yield
            finally:
                connection.execute("UPDATE test_clock.ahead SET stands_at = NULL")

    def set_right(self) -> None:
        """From now on `now_()` is the time it is."""
        with self._as_owner() as connection:
            connection.execute("UPDATE test_clock.ahead SET ahead = interval '0' WHERE ahead <> interval '0'")
