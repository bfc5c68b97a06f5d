"""What goes round the ledger is refused by the database itself. Everything here runs as the application role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction

from sagas import api
from sagas.errors import AlreadyPublished
from sagas.facts import RunFacts
from sagas.models import ContractVersion, DefinitionVersion, Entry, Run
from sagas.states import STATES, Machine, legal_pairs
from sagas.teamfile import team_from_document
from tests.integration.sagas.conftest import OPERATOR, ROOT
from tests.integration.sagas.stage import Stage, stage
from tests.integration.sagas.test_deadlines import DESK
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition

__all__ = ["stage"]

pytestmark = pytest.mark.requirement("S4-28", "S4-20")

APPEND_ONLY = (
    "sagas_entry",
    "sagas_evidence",
    "sagas_contractversion",
    "sagas_definitionversion",
    "sagas_teamversion",
)


@pytest.fixture(scope="module")
def case(stage: Stage) -> RunFacts:
    """A run in a handoff, with an unknown step, evidence, a compensation and a handoff."""
    stage.simulator.plan(
        {"tool": "send_notice", "mode": "cut"}, {"tool": "query_notice", "mode": "query_down"}
    )
    api.publish_team(team_from_document(DESK), DESK, actor=OPERATOR)  # an empty table has nothing to refuse
    stage.start("order_fulfilment", 5_000_001)
    stage.settle()
    return stage.facts(5_000_001)


@pytest.fixture(autouse=True)
def as_application_role(stage: Stage) -> Iterator[None]:
    """Every statement is the application role's, and none of them changes anything."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, session_user, pg_is_in_recovery()")
        assert cursor.fetchone()[:2] == (settings.APP_DB_ROLE, settings.APP_DB_ROLE)
    before = _trail()
    yield
    assert _trail() == before


def _trail() -> tuple[int, int]:
    return Entry.objects.count(), sum(Run.objects.values_list("version", flat=True))


def refused(statement: str, match: str = "amends: |permission denied|must be owner") -> str:
    """Run a statement in a transaction of its own; the database must refuse it, at the latest at COMMIT."""
    with pytest.raises(DatabaseError, match=match) as error:
        _commit(statement)
    return str(error.value)


def _commit(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_the_application_role_owns_nothing_and_may_do_nothing_special() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == (False, False, False, False)
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tableowner = current_user")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE", "DROP TABLE {} CASCADE"],
    ids=lambda statement: statement.split()[0].lower(),
)
def test_what_was_written_to_the_record_stays(case: RunFacts, table: str, statement: str) -> None:
    refused(statement.format(table))


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_the_record_is_append_only_for_its_owner_as_well(
    case: RunFacts, fresh_database: str, table: str, statement: str
) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        if owner.execute(f"SELECT FROM {table} LIMIT 1").fetchone() is None:
            api.publish_team(
                team_from_document(DESK), DESK, actor=OPERATOR
            )  # an empty table has nothing to refuse
        with pytest.raises(psycopg.Error, match="append-only"):
            owner.execute(statement.format(table))


@pytest.mark.parametrize(
    "table", ["sagas_run", "sagas_action", "sagas_attempt", "sagas_compensation", "sagas_handoff"]
)
def test_nothing_of_a_run_can_be_deleted(case: RunFacts, table: str) -> None:
    refused(f"DELETE FROM {table}")
    refused(f"TRUNCATE {table} CASCADE")


@pytest.mark.parametrize(
    "switch",
    [
        "SET session_replication_role = replica",
        "ALTER TABLE sagas_run DISABLE TRIGGER ALL",
        "ALTER TABLE sagas_entry DISABLE TRIGGER guard_rows",
        "DROP TRIGGER guard_move ON sagas_run",
        "CREATE OR REPLACE FUNCTION sagas_guard_move() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE OR REPLACE FUNCTION now_() RETURNS timestamptz LANGUAGE sql AS 'SELECT clock_timestamp()'",
        "INSERT INTO sagas_legal_move VALUES ('action', 'unknown', 'skipped')",
        "DELETE FROM sagas_legal_move",
    ],
)
def test_the_guards_cannot_be_switched_off(switch: str) -> None:
    refused(switch, match="permission denied|must be owner")


STATED = {
    "run": "sagas_run",
    "action": "sagas_action",
    "compensation": "sagas_compensation",
    "handoff": "sagas_handoff",
}


@pytest.mark.parametrize("table", STATED.values())
def test_no_state_changes_without_an_entry_of_the_same_transaction(case: RunFacts, table: str) -> None:
    machine = next(machine for machine, name in STATED.items() if name == table)
    legal = {
        source: target
        for m, source, target in sorted(legal_pairs())
        if m == machine and source and source != target
    }
    cases = " ".join(f"WHEN '{source}' THEN '{target}'" for source, target in legal.items())
    movable = ", ".join(f"'{source}'" for source in legal)
    message = refused(
        f"UPDATE {table} SET state = CASE state {cases} END, version = version + 1 WHERE state IN ({movable})"
    )
    assert "without an entry" in message


def test_no_move_that_the_tables_do_not_name(case: RunFacts) -> None:
    message = refused(
        "UPDATE sagas_action SET state = 'skipped', version = version + 1 WHERE state = 'unknown'"
    )
    assert "may not go from unknown" in message


@pytest.mark.parametrize("step", ["+ 2", "- 1"])
def test_no_version_is_left_out_or_taken_back(case: RunFacts, step: str) -> None:
    assert "may not go" in refused(f"UPDATE sagas_run SET version = version {step}")


def test_the_state_does_not_move_while_the_version_stays(case: RunFacts) -> None:
    refused("UPDATE sagas_run SET state = 'compensating' WHERE state = 'handoff'")


@pytest.mark.requirement("S3-17")
@pytest.mark.parametrize("column", ["fence", "seq"])
def test_fence_and_numbering_never_fall(case: RunFacts, column: str) -> None:
    assert "may not fall" in refused(f"UPDATE sagas_run SET {column} = {column} - 1")


@pytest.mark.parametrize(
    ("table", "state"),
    [("sagas_run", "completed"), ("sagas_compensation", "confirmed"), ("sagas_handoff", "resolved")],
)
def test_nothing_begins_in_a_later_state(case: RunFacts, table: str, state: str) -> None:
    columns = _columns_but_id(table)
    values = ", ".join({"state": f"'{state}'", "version": "1"}.get(name, name) for name in columns)
    refused(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}", match="may not begin")


def test_a_run_does_not_begin_without_an_entry(case: RunFacts) -> None:
    columns = _columns_but_id("sagas_run")
    new = {"state": "'running'", "version": "1", "ref": "'run_ghost'", "start_key": "'ghost'"}
    values = ", ".join(new.get(name, name) for name in columns)
    message = refused(f"INSERT INTO sagas_run ({', '.join(columns)}) SELECT {values} FROM sagas_run LIMIT 1")
    assert "began without an entry" in message


def _columns_but_id(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(column_name) FROM information_schema.columns WHERE table_name = %s "
            "AND column_name <> 'id' AND is_generated = 'NEVER' AND table_schema = 'public'",
            [table],
        )
        return [row[0] for row in cursor.fetchall()]


def test_an_entry_of_another_transaction_covers_no_change(case: RunFacts) -> None:
    """An entry written today does not allow tomorrow's change: it has to be of the very transaction."""
    handoff = api.run_facts(case.ref).handoff
    assert handoff is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT version FROM sagas_handoff WHERE id = %s AND state = 'open'",
            [handoff.id],
        )
        (version,) = cursor.fetchone()
    insert = (
        "INSERT INTO sagas_entry (run_id, run_ref, seq, name, machine, object_id, object_version, step, source, target,"
        " actor_kind, actor_id, actor_name, role, reason, command_id) VALUES (NULL, '', NULL, 'human.handoff.claimed',"
        f" 'handoff', {handoff.id}, {version + 1}, '', 'open', 'claimed', 'human', 'x', 'X', 'operator', '', '')"
    )
    move = f"UPDATE sagas_handoff SET state = 'claimed', version = version + 1 WHERE id = {handoff.id}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(insert)
        cursor.execute(move)  # in one transaction the two belong together
        transaction.set_rollback(True)
    message = refused(move)
    assert "without an entry" in message


@pytest.mark.parametrize("column", ["id", "at", "xid"])
def test_no_entry_is_dated_or_numbered_by_its_writer(column: str) -> None:
    value = {"id": "1", "at": "now()", "xid": "pg_current_xact_id()"}[column]
    refused(
        f"INSERT INTO sagas_entry ({column}, name, actor_kind, actor_id, actor_name, role) "
        f"VALUES ({value}, 'x', 'system', 'x', 'x', 'x')",
        match="permission denied|non-DEFAULT",
    )


def test_one_change_has_one_entry(case: RunFacts) -> None:
    first = next(e for e in api.entries(case.ref) if e.machine == Machine.ACTION)
    entry = Entry.objects.get(pk=first.id)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sagas_entry (run_ref, name, machine, object_id, object_version, step, source, target,"
            " actor_kind, actor_id, actor_name, role, reason, command_id) VALUES"
            " ('', 'x', %s, %s, %s, '', '', %s, 'system', 'x', 'x', 'x', '', '')",
            [entry.machine, entry.object_id, entry.object_version, entry.target],
        )


# --- What is published ------------------------------------------------------------------------------------------


def test_a_published_contract_or_workflow_never_changes() -> None:
    contract = read_contract(ROOT / "tools" / "catalog" / "send_notice.toml")
    definition = read_definition(ROOT / "examples" / "order_fulfilment.toml")
    before = (ContractVersion.objects.count(), DefinitionVersion.objects.count())

    assert api.publish_contract(contract, actor=OPERATOR) is False
    assert api.publish_definition(definition, actor=OPERATOR) is False
    with pytest.raises(AlreadyPublished):
        api.publish_contract(contract_from_document(_changed(contract.document)), actor=OPERATOR)
    with pytest.raises(AlreadyPublished):
        api.publish_definition(
            definition_from_document({**definition.document, "title": "Else"}), actor=OPERATOR
        )

    assert (ContractVersion.objects.count(), DefinitionVersion.objects.count()) == before


def _changed(document: Any) -> Any:
    return {**document, "level": "critical"}


@pytest.mark.requirement("S0-4")
def test_every_change_of_the_case_has_exactly_one_entry_with_an_actor_and_a_role(case: RunFacts) -> None:
    entries = api.entries(case.ref)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    moves = [(e.machine, e.source, e.target) for e in entries if e.machine]
    assert set(moves) <= {(m, s, t) for m, s, t in legal_pairs()}
    assert all(entry.actor_id and entry.role for entry in entries)
    versions: dict[tuple[str, int], list[int]] = {}
    for row in Entry.objects.filter(run_id=case.id).exclude(machine="").order_by("seq"):
        assert row.object_id is not None
        assert row.object_version is not None
        versions.setdefault((row.machine, row.object_id), []).append(row.object_version)
    for (machine, _), numbers in versions.items():
        assert len(set(numbers)) == len(numbers), machine
        if machine not in ("run", "action"):
            assert numbers == list(range(1, len(numbers) + 1)), machine


# --- Every pair of states, at the database itself ---------------------------------------------------------------


@pytest.mark.requirement("S3-2", "S3-3")
@pytest.mark.parametrize("machine", [Machine.RUN, Machine.ACTION, Machine.COMPENSATION, Machine.HANDOFF])
def test_the_database_lets_every_move_of_the_tables_through_and_no_other(
    stage: Stage, case: RunFacts, machine: Machine
) -> None:
    """Each pair with a proper entry of the same transaction, so that the pair alone decides."""
    table = STATED[machine.value]
    ((pk, state, version),) = stage.owner.execute(
        f"SELECT id, state, version FROM {table} ORDER BY id LIMIT 1"
    ).fetchall()
    wrong = []
    for source in STATES[machine]:
        stage.owner.execute(f"UPDATE {table} SET state = '{source}' WHERE id = {pk}")
        for target in STATES[machine]:
            if source != target and _passes(machine, table, pk, version, target) != (
                (machine.value, source, target) in legal_pairs()
            ):
                wrong.append((source, target))
    stage.owner.execute(f"UPDATE {table} SET state = '{state}' WHERE id = {pk}")
    assert wrong == []


def _passes(machine: Machine, table: str, pk: int, version: int, target: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO sagas_entry (run_ref, name, machine, object_id, object_version, step, source, target, "
                "actor_kind, actor_id, actor_name, role, reason, command_id) VALUES "
                "('', 'x', %s, %s, %s, '', '', %s, 'system', 'x', 'x', 'x', '', '')",
                [machine.value, pk, version + 1, target],
            )
            cursor.execute(
                f"UPDATE {table} SET state = %s, version = version + 1 WHERE id = %s", [target, pk]
            )
            transaction.set_rollback(True)
    except IntegrityError as error:
        if "may not go from" in str(error):
            return False
        raise
    return True
