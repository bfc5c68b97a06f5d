"""The tests see the database as the processes do: as a role that owns nothing and may delete nothing of the trail."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.db import connection

PRIVILEGES = "has_table_privilege(current_user, c.oid, %s)"
ENGINE_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'public' AND c.relkind = 'r' AND (c.relname LIKE 'sagas\\_%%' OR c.relname LIKE 'workbench\\_%%')"
)


def asked(sql: str, *params: str) -> list[tuple[object, ...]]:
    """Every row of an answer."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


@pytest.mark.django_db
@pytest.mark.requirement("S4-25")
def test_tests_run_as_the_application_role_which_owns_nothing() -> None:
    (role,) = asked(
        "SELECT current_user::text, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls "
        "FROM pg_roles WHERE rolname = current_user"
    )
    owned = asked("SELECT relname FROM pg_class WHERE pg_get_userbyid(relowner) = current_user")
    owners = asked(
        "SELECT DISTINCT pg_has_role(current_user, relowner, 'MEMBER') FROM pg_class WHERE relname LIKE 'sagas%%'"
    )

    assert role == (settings.APP_DB_ROLE, False, False, False, False, False)
    assert owned == []
    assert owners == [(False,)]


@pytest.mark.django_db
@pytest.mark.requirement("S4-25", "S4-28")
def test_no_table_of_the_product_can_be_emptied_and_nothing_of_it_deleted() -> None:
    tables = asked(ENGINE_TABLES)
    too_much = asked(f"{ENGINE_TABLES} AND ({PRIVILEGES} OR {PRIVILEGES})", "DELETE", "TRUNCATE")

    assert len(tables) > 15
    assert too_much == []


@pytest.mark.django_db
@pytest.mark.requirement("S4-20", "S4-28")
@pytest.mark.parametrize(
    "table",
    [
        "sagas_entry",
        "sagas_evidence",
        "sagas_contractversion",
        "sagas_definitionversion",
        "workbench_receipt",
    ],
)
def test_what_is_only_ever_added_to_can_be_updated_in_no_column(table: str) -> None:
    assert asked("SELECT has_any_column_privilege(current_user, %s, 'UPDATE')", table) == [(False,)]
    assert asked("SELECT has_any_column_privilege(current_user, %s, 'INSERT')", table) == [(True,)]


@pytest.mark.django_db
@pytest.mark.requirement("S4-28")
@pytest.mark.parametrize("column", ["xid", "at"])
def test_when_and_in_which_transaction_an_entry_was_written_is_the_databases_own_word(column: str) -> None:
    allowed = asked("SELECT has_column_privilege(current_user, 'sagas_entry', %s, 'INSERT')", column)

    assert allowed == [(False,)]


@pytest.mark.django_db
@pytest.mark.requirement("S4-28")
def test_no_guard_can_be_switched_off_in_a_session() -> None:
    switched_off = asked("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'")
    guards = asked("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE 'guard\\_%%'")

    assert switched_off == []
    assert guards > [(10,)]
