"""The database's own guard, as plain SQL for migrations: legal moves, version + 1, an entry for every change,
append-only trail, and what the application role may do. Generated from `sagas.states`.

Plain triggers, because an extension whose triggers a session setting can switch off is no guard.
"""

from __future__ import annotations

from sagas.states import Machine, legal_pairs

CLOCK = """
CREATE OR REPLACE FUNCTION now_() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
AS 'SELECT clock_timestamp()';
"""

_TABLES = {
    Machine.RUN: "sagas_run",
    Machine.ACTION: "sagas_action",
    Machine.COMPENSATION: "sagas_compensation",
    Machine.HANDOFF: "sagas_handoff",
    Machine.PERMIT: "sagas_permit",
}
_TABLES_SINCE = {Machine.PROPOSAL: "sagas_proposal"}
"""Tables of later migrations, each with its own call of `triggers_of`."""

_BORN_WITH_ENTRY = (Machine.RUN, Machine.COMPENSATION, Machine.HANDOFF, Machine.PERMIT, Machine.PROPOSAL)

_MOVE_GUARD = """
CREATE OR REPLACE FUNCTION sagas_guard_move() RETURNS trigger LANGUAGE plpgsql AS $guard$
DECLARE
  wrong record;
BEGIN
  SELECT o.id, o.state AS source, n.state AS target, o.version AS was, n.version AS is_now, legal.yes AS legal INTO wrong
  FROM old_rows o JOIN new_rows n USING (id),
  LATERAL (SELECT n.version BETWEEN o.version AND o.version + 1 AND (n.state = o.state OR (n.version > o.version
    AND EXISTS (SELECT 1 FROM sagas_legal_move l
      WHERE l.machine = TG_ARGV[0] AND l.source = o.state AND l.target = n.state OFFSET 0))) AS yes) legal
  WHERE (n.state <> o.state OR n.version <> o.version)
    AND (NOT legal.yes OR ((n.state <> o.state OR TG_ARGV[0] <> 'run') AND NOT EXISTS (
      SELECT 1 FROM sagas_entry e
      WHERE e.machine <> '' AND e.machine = TG_ARGV[0] AND e.object_id = n.id AND e.object_version = n.version
        AND e.target = n.state AND e.xid = pg_current_xact_id() OFFSET 0)))
  LIMIT 1;
  IF FOUND AND NOT wrong.legal THEN
    RAISE EXCEPTION 'amends: % % may not go from % (version %) to % (version %)',
      TG_ARGV[0], wrong.id, wrong.source, wrong.was, wrong.target, wrong.is_now
      USING ERRCODE = 'check_violation';
  ELSIF FOUND THEN
    RAISE EXCEPTION 'amends: % % went from % to % without an entry',
      TG_ARGV[0], wrong.id, wrong.source, wrong.target USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $guard$;

CREATE OR REPLACE FUNCTION sagas_guard_fence() RETURNS trigger LANGUAGE plpgsql AS $guard$
DECLARE
  wrong record;
BEGIN
  SELECT o.id, o.fence AS was, n.fence AS is_now INTO wrong
  FROM old_rows o JOIN new_rows n USING (id) WHERE n.fence < o.fence OR n.seq < o.seq LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'amends: the fence of run % may not fall from % to %', wrong.id, wrong.was, wrong.is_now
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $guard$;

CREATE OR REPLACE FUNCTION sagas_guard_birth() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
  IF NEW.version <> 1 OR NOT EXISTS (
      SELECT 1 FROM sagas_legal_move l
      WHERE l.machine = TG_ARGV[0] AND l.source = '' AND l.target = NEW.state) THEN
    RAISE EXCEPTION 'amends: a % may not begin as %', TG_ARGV[0], NEW.state USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $guard$;

CREATE OR REPLACE FUNCTION sagas_guard_birth_entry() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM sagas_entry e
      WHERE e.machine <> '' AND e.machine = TG_ARGV[0] AND e.object_id = NEW.id AND e.object_version = 1
        AND e.xid = pg_current_xact_id()) THEN
    RAISE EXCEPTION 'amends: % % began without an entry', TG_ARGV[0], NEW.id USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $guard$;

CREATE OR REPLACE FUNCTION sagas_guard_append_only() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
  RAISE EXCEPTION 'amends: % is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $guard$;
"""

_APPEND_ONLY = ("sagas_entry", "sagas_evidence", "sagas_contractversion", "sagas_definitionversion")

_READ_WRITE = (
    "sagas_run",
    "sagas_action",
    "sagas_attempt",
    "sagas_compensation",
    "sagas_handoff",
    "sagas_question",
    "sagas_permit",
    "sagas_outbox",
    "sagas_worker",
    "sagas_gate",
    "sagas_freeze",
)

_INSERT_COLUMNS = {
    "sagas_entry": (
        "run_id, run_ref, seq, name, machine, object_id, object_version, step, source, target, actor_kind, "
        "actor_id, actor_name, role, reason, before, after, command_id, saw_version"
    ),
    "sagas_evidence": (
        "run_id, action_id, compensation_id, attempt_id, key, source, verdict, rank, reference, detail, body, "
        "sender_at, sender_version, by"
    ),
}


def functions() -> str:
    """What the triggers call.

    The entry of a change is looked for in words that its partial index is known to answer, and with `OFFSET 0`, which
    keeps the planner from answering it by a join or a hash: one planned while the trail was short would read all of it,
    each time that a row moves, until the connection ends.
    """
    return _MOVE_GUARD


def legal_moves() -> str:
    """The table of legal moves, rewritten from `sagas.states`."""
    values = ", ".join(f"('{m}', '{source}', '{target}')" for m, source, target in sorted(legal_pairs()))
    return f"""
CREATE TABLE IF NOT EXISTS sagas_legal_move (
  machine text NOT NULL, source text NOT NULL, target text NOT NULL, PRIMARY KEY (machine, source, target));
DELETE FROM sagas_legal_move;
INSERT INTO sagas_legal_move VALUES {values};
"""  # noqa: S608  fixed words from the tables of this package


def triggers() -> str:
    """The triggers on the tables that have states, and on the append-only ones."""
    parts = [_MOVE_GUARD]
    parts += [triggers_of(machine) for machine in _TABLES]
    parts.append("""
CREATE TRIGGER guard_fence AFTER UPDATE ON sagas_run REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION sagas_guard_fence();
""")
    parts += [append_only(table) for table in _APPEND_ONLY]
    return "".join(parts)


def append_only(table: str) -> str:
    """The triggers that refuse every change of a row and the emptying of the table."""
    return f"""
CREATE TRIGGER guard_rows BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION sagas_guard_append_only();
CREATE TRIGGER guard_table BEFORE TRUNCATE ON {table}
  FOR EACH STATEMENT EXECUTE FUNCTION sagas_guard_append_only();
"""


def triggers_of(machine: Machine) -> str:
    """The triggers on the table of one machine; their functions are there already."""
    table = {**_TABLES, **_TABLES_SINCE}[machine]
    sql = f"""
CREATE TRIGGER guard_move AFTER UPDATE ON {table} REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION sagas_guard_move('{machine.value}');
CREATE TRIGGER guard_birth BEFORE INSERT ON {table}
  FOR EACH ROW EXECUTE FUNCTION sagas_guard_birth('{machine.value}');
"""
    if machine in _BORN_WITH_ENTRY:
        sql += f"""
CREATE CONSTRAINT TRIGGER guard_birth_entry AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION sagas_guard_birth_entry('{machine.value}');
"""
    return sql


ENTRY_TRANSACTION = """
ALTER TABLE sagas_entry ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE UNIQUE INDEX entry_per_change ON sagas_entry (machine, object_id, object_version) WHERE machine <> '';
"""


def grants(role: str) -> str:
    """What the application role may do: no delete anywhere, no update of what is append-only."""
    quoted = '"' + role.replace('"', '""') + '"'
    parts = [f"GRANT USAGE ON SCHEMA public TO {quoted};", f"GRANT SELECT ON sagas_legal_move TO {quoted};"]
    parts += [f"GRANT SELECT, INSERT, UPDATE ON {table} TO {quoted};" for table in _READ_WRITE]
    parts += [f"GRANT SELECT ON {table} TO {quoted};" for table in _APPEND_ONLY]
    parts += [
        f"GRANT INSERT ON {table} TO {quoted};"
        for table in ("sagas_contractversion", "sagas_definitionversion")
    ]
    parts += [
        f"GRANT INSERT ({columns}) ON {table} TO {quoted};" for table, columns in _INSERT_COLUMNS.items()
    ]
    parts.append(f"GRANT USAGE ON SEQUENCE sagas_handoff_id_seq, sagas_permit_id_seq TO {quoted};")
    parts.append(f"GRANT SELECT ON django_migrations TO {quoted};")
    return "\n".join(parts)
