"""The simulator's memory: one SQLite file that survives a kill at any instant.

Owns tables and transactions; knows nothing of HTTP, tools or what a record means.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.simulator import clock
from tools.simulator.wire import Json

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, call INTEGER, at TEXT NOT NULL, kind TEXT NOT NULL,
  tool TEXT NOT NULL, system TEXT NOT NULL, operation TEXT NOT NULL, direction TEXT NOT NULL,
  key TEXT NOT NULL, business TEXT NOT NULL, status INTEGER, detail TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS ledger_business ON ledger (business, kind);
CREATE INDEX IF NOT EXISTS ledger_key ON ledger (key);
CREATE TABLE IF NOT EXISTS objects (
  kind TEXT NOT NULL, id TEXT NOT NULL, business TEXT NOT NULL, key TEXT NOT NULL, state TEXT NOT NULL,
  parent TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, id));
CREATE INDEX IF NOT EXISTS objects_key ON objects (kind, key);
CREATE INDEX IF NOT EXISTS objects_parent ON objects (kind, parent);
CREATE TABLE IF NOT EXISTS answers (
  tool TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (tool, key));
CREATE TABLE IF NOT EXISTS postings (
  n INTEGER PRIMARY KEY, book TEXT NOT NULL, account TEXT NOT NULL, amount INTEGER NOT NULL,
  business TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS accounts (
  book TEXT NOT NULL, account TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (book, account));
CREATE TABLE IF NOT EXISTS rules (
  id INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER NOT NULL, spec TEXT NOT NULL, used INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tries (
  rule INTEGER NOT NULL, subject TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (rule, subject));
CREATE TABLE IF NOT EXISTS later (
  id INTEGER PRIMARY KEY, due_at REAL NOT NULL, call INTEGER NOT NULL, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS callbacks (id INTEGER PRIMARY KEY, due_at REAL NOT NULL, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL);
"""

CLEARED = ("ledger", "objects", "answers", "postings", "accounts", "rules", "tries", "later", "callbacks")


@dataclass(frozen=True, kw_only=True)
class Thing:
    """One record of a system. `parent` is what it hangs on (a customer number, an identity number)."""

    kind: str
    id: str
    business: str
    key: str
    state: str
    parent: str
    body: Mapping[str, Json]


class Tables:
    """Everything a transaction may do. Only handed out by `Store.change`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    @contextmanager
    def nothing_kept(self) -> Iterator[None]:
        """What is done inside is taken back at its end, whatever comes of it: a system's test mode."""
        self.db.execute("SAVEPOINT trial")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK TO trial")
            self.db.execute("RELEASE trial")

    # -- records ---------------------------------------------------------------------------------------
    def next_id(self, prefix: str, *, start: int = 1001) -> str:
        """A readable id that is never given out twice, not even after a reset."""
        row = self.db.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + 1 RETURNING n",
            (prefix, start),
        ).fetchone()
        return f"{prefix}{row[0]}"

    def put(self, thing: Thing) -> Thing:
        """Store a record, new or changed."""
        self.db.execute(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, id) DO UPDATE"
            " SET business = excluded.business, state = excluded.state, body = excluded.body",
            (
                thing.kind,
                thing.id,
                thing.business,
                thing.key,
                thing.state,
                thing.parent,
                json.dumps(dict(thing.body)),
            ),
        )
        return thing

    def get(self, kind: str, id_: str) -> Thing | None:
        """The record with this id, or None."""
        return self._one("WHERE kind = ? AND id = ?", (kind, id_))

    def by_key(self, kind: str, key: str) -> Thing | None:
        """The first record that a write with this key made, or None."""
        return self._one("WHERE kind = ? AND key = ? ORDER BY rowid LIMIT 1", (kind, key)) if key else None

    def by_parent(self, kind: str, parent: str, state: str) -> Thing | None:
        """The first record in `state` that hangs on `parent`, or None."""
        sql = "WHERE kind = ? AND parent = ? AND state = ? ORDER BY rowid LIMIT 1"
        return self._one(sql, (kind, parent, state))

    def _one(self, where: str, values: tuple[str, ...]) -> Thing | None:
        sql = f"SELECT kind, id, business, key, state, parent, body FROM objects {where}"  # noqa: S608 - ours
        row = self.db.execute(sql, values).fetchone()
        return _thing(row) if row else None

    def of(self, kind: str, parent: str) -> list[Thing]:
        """Every record of a kind that hangs on `parent`, oldest first."""
        sql = "SELECT kind, id, business, key, state, parent, body FROM objects WHERE kind = ? AND parent = ?"
        return [_thing(row) for row in self.db.execute(f"{sql} ORDER BY rowid", (kind, parent))]

    def beginning(self, kind: str, parent: str) -> list[Thing]:
        """Every record of a kind that hangs on something whose name begins so."""
        sql = "SELECT kind, id, business, key, state, parent, body FROM objects WHERE kind = ?"
        span = (kind, parent, parent + "\U0010ffff")
        return [_thing(row) for row in self.db.execute(f"{sql} AND parent >= ? AND parent < ?", span)]

    def all_things(self) -> list[Thing]:
        """Every record, oldest first within its kind."""
        sql = "SELECT kind, id, business, key, state, parent, body FROM objects ORDER BY kind, rowid"
        return [_thing(row) for row in self.db.execute(sql)]

    # -- books -----------------------------------------------------------------------------------------
    def post(self, *, book: str, source: str, target: str, amount: int, business: str, reason: str) -> None:
        """Move `amount` units from one account of a book to another: two rows whose sum is zero."""
        sql = "INSERT INTO postings (book, account, amount, business, reason) VALUES (?, ?, ?, ?, ?)"
        self.db.executemany(
            sql, [(book, source, -amount, business, reason), (book, target, amount, business, reason)]
        )
        sums = (
            "INSERT INTO accounts VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET amount = amount + excluded.amount"
        )
        self.db.executemany(sums, [(book, source, -amount), (book, target, amount)])

    def balance(self, book: str, account: str) -> int:
        """The running sum of an account, in the book's unit."""
        row = self.db.execute(
            "SELECT amount FROM accounts WHERE book = ? AND account = ?", (book, account)
        ).fetchone()
        return int(row[0]) if row else 0

    def balances(self) -> dict[str, dict[str, int]]:
        """book -> account -> sum, added up anew from the postings."""
        books: dict[str, dict[str, int]] = {}
        sql = "SELECT book, account, sum(amount) FROM postings GROUP BY book, account ORDER BY book, account"
        for book, account, amount in self.db.execute(sql):
            books.setdefault(book, {})[account] = amount
        return books

    # -- the ledger of calls ---------------------------------------------------------------------------
    def record(
        self,
        *,
        kind: str,
        tool: str,
        system: str,
        operation: str,
        direction: str,
        key: str,
        business: str,
        call: int | None = None,
        status: int | None = None,
        detail: Mapping[str, Json] | None = None,
    ) -> int:
        """Append one record; returns its number. `call` is the number of the arrival it belongs to."""
        at = clock.moment().isoformat(timespec="milliseconds")
        cursor = self.db.execute(
            "INSERT INTO ledger (call, at, kind, tool, system, operation, direction, key, business, status,"
            " detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                call,
                at,
                kind,
                tool,
                system,
                operation,
                direction,
                key,
                business,
                status,
                json.dumps(dict(detail or {})),
            ),
        )
        seq = int(cursor.lastrowid or 0)
        if call is None:
            self.db.execute("UPDATE ledger SET call = seq WHERE seq = ?", (seq,))
        return seq

    def records(
        self, where: str = "", values: tuple[Json, ...] = (), limit: int = 100_000
    ) -> list[dict[str, Json]]:
        """Ledger records in order, as dictionaries."""
        sql = f"SELECT * FROM ledger {where} ORDER BY seq LIMIT {limit}"  # noqa: S608 - both are ours
        cursor = self.db.execute(sql, values)
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
        for row in rows:
            row["detail"] = json.loads(row["detail"])
        return rows

    def last(self) -> int:
        """The number of the last record; 0 when there is none."""
        return int(self.db.execute("SELECT coalesce(max(seq), 0) FROM ledger").fetchone()[0])

    # -- answers kept for a key ------------------------------------------------------------------------
    def kept_answer(self, tool: str, key: str) -> tuple[str, int, Json] | None:
        """(request digest, status, body) of the first answer to this key, or None."""
        sql = "SELECT request, status, body FROM answers WHERE tool = ? AND key = ?"
        row = self.db.execute(sql, (tool, key)).fetchone()
        return (row[0], row[1], json.loads(row[2])) if row else None

    def keep_answer(self, tool: str, key: str, request: str, status: int, body: Json) -> None:
        """Keep the answer so that a repeat gets it again."""
        self.db.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?)", (tool, key, request, status, json.dumps(body))
        )

    # -- planned misbehaviour --------------------------------------------------------------------------
    def add_rules(self, specs: list[dict[str, Json]]) -> list[int]:
        """Store rules; a later batch goes before an earlier one, inside a batch the given order holds."""
        batch = self.db.execute("SELECT coalesce(max(batch), 0) + 1 FROM rules").fetchone()[0]
        sql = "INSERT INTO rules (batch, spec, used) VALUES (?, ?, 0)"
        specs = [
            {**spec, "until": clock.now() + spec["for_s"]} if "for_s" in spec else spec for spec in specs
        ]
        return [int(self.db.execute(sql, (batch, json.dumps(spec))).lastrowid or 0) for spec in specs]

    def rules(self) -> list[tuple[int, dict[str, Json], int]]:
        """(id, rule, how often it was used), in the order in which they are tried."""
        sql = "SELECT id, spec, used FROM rules ORDER BY batch DESC, id"
        return [(row[0], json.loads(row[1]), row[2]) for row in self.db.execute(sql)]

    def drop_rules(self, id_: int | None = None) -> int:
        """Forget one rule or all of them; returns how many went."""
        if id_ is None:
            return self.db.execute("DELETE FROM rules").rowcount
        return self.db.execute("DELETE FROM rules WHERE id = ?", (id_,)).rowcount

    def count_try(self, rule: int, subject: str) -> int:
        """Count one more arrival for (rule, subject); returns the number of this one, from 1."""
        sql = "INSERT INTO tries VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET n = n + 1 RETURNING n"
        return int(self.db.execute(sql, (rule, subject)).fetchone()[0])

    def use_rule(self, rule: int) -> None:
        """Count one use of a rule."""
        self.db.execute("UPDATE rules SET used = used + 1 WHERE id = ?", (rule,))

    # -- effects that land later -----------------------------------------------------------------------
    def add_later(self, due_at: float, call: int, request: Mapping[str, Json]) -> None:
        """Keep a request whose effect lands at `due_at` (seconds of the wall clock)."""
        sql = "INSERT INTO later (due_at, call, request) VALUES (?, ?, ?)"
        self.db.execute(sql, (due_at, call, json.dumps(dict(request))))

    def take_later(self) -> tuple[int, dict[str, Json]] | None:
        """Take the next request that is due: (number of its arrival, request), or None."""
        sql = "SELECT id, call, request FROM later WHERE due_at <= ? ORDER BY due_at LIMIT 1"
        row = self.db.execute(sql, (clock.now(),)).fetchone()
        if row is None:
            return None
        self.db.execute("DELETE FROM later WHERE id = ?", (row[0],))
        return row[1], json.loads(row[2])

    def next_due(self) -> float | None:
        """When the next late effect lands, or None."""
        value: float | None = self.db.execute("SELECT min(due_at) FROM later").fetchone()[0]
        return value

    # -- what is to be called back ---------------------------------------------------------------------
    def add_callback(self, due_at: float, spec: Mapping[str, Json]) -> None:
        """Keep something to be done for a caller at `due_at` (seconds of the wall clock)."""
        self.db.execute(
            "INSERT INTO callbacks (due_at, spec) VALUES (?, ?)", (due_at, json.dumps(dict(spec)))
        )

    def due_callback(self) -> tuple[int, dict[str, Json]] | None:
        """The first of them that is due, left where it is: (number, what), or None."""
        sql = "SELECT id, spec FROM callbacks WHERE due_at <= ? ORDER BY due_at, id LIMIT 1"
        row = self.db.execute(sql, (clock.now(),)).fetchone()
        return (row[0], json.loads(row[1])) if row else None

    def drop_callback(self, id_: int) -> None:
        """Forget one."""
        self.db.execute("DELETE FROM callbacks WHERE id = ?", (id_,))

    def next_callback(self) -> float | None:
        """When the next one is due, or None."""
        value: float | None = self.db.execute("SELECT min(due_at) FROM callbacks").fetchone()[0]
        return value

    def clear(self) -> None:
        """Forget everything but the numbering: sequence and ids go on, so nothing old can be mistaken."""
        for table in CLEARED:
            self.db.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the tuple above


def _thing(row: tuple[str, ...]) -> Thing:
    kind, id_, business, key, state, parent, body = row
    return Thing(
        kind=kind, id=id_, business=business, key=key, state=state, parent=parent, body=json.loads(body)
    )


class Store:
    """The file. One process at a time may hold it; raises BlockingIOError when another one does."""

    def __init__(self, folder: Path, *, fast: bool = False, in_memory: bool = False) -> None:
        """`fast`: do not wait for the disk; `in_memory`: leave nothing on it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._hold: IO[str] = (folder / "world.lock").open("w")
        fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(
            ":memory:" if in_memory else folder / "world.sqlite3",
            isolation_level=None,
            check_same_thread=False,
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {'OFF' if fast else 'FULL'}")
        self._db.executescript(SCHEMA)

    @contextmanager
    def change(self) -> Iterator[Tables]:
        """One transaction, alone; committed at the end, taken back when the body raises."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield Tables(self._db)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the file and let another process have it."""
        with self._lock:
            self._db.close()
            self._hold.close()
