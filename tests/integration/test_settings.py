"""The settings as the processes meet them: roles, limits, headers, no secret left to a default."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.test import Client

from tests.unit.config.production import COMPLETE, settings_in

CLONE = Path(__file__).resolve().parent.parent.parent
CHECK = "from django.conf import settings; print(settings.DEBUG)"


def test_a_process_in_production_starts_and_ends_with_the_name_of_what_is_missing() -> None:
    """Every variable by itself is tried in tests/unit/config; here a process really reads its environment."""
    complete = setup_with(COMPLETE)
    partial = setup_with({name: value for name, value in COMPLETE.items() if name != "REDIS_URL"})

    assert complete.stdout == "False\n", complete.stderr
    assert partial.returncode == 1
    assert "The environment variable REDIS_URL must be set." in partial.stderr


def setup_with(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    base = {"PATH": os.defpath, "DJANGO_SETTINGS_MODULE": "workbench.config.settings"}
    command = [sys.executable, "-c", CHECK]
    return subprocess.run(
        command, cwd=CLONE, env={**base, **environment}, capture_output=True, text=True, check=False
    )


def test_outside_production_no_key_is_known_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {settings_in(monkeypatch, AMENDS_ENV="demo", DJANGO_SECRET_KEY="")["SECRET_KEY"] for _ in range(2)}

    assert len(keys) == 2


@pytest.mark.django_db
def test_processes_work_as_the_application_role_within_limits() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, current_setting('lock_timeout'), current_setting('statement_timeout'),"
            " current_setting('idle_in_transaction_session_timeout')"
        )
        assert cursor.fetchone() == ("amends_app", "5s", "1min", "30s")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (line text)",
        "ALTER TABLE django_session ADD COLUMN mine text",
        "DROP TABLE django_session",
        "TRUNCATE django_session",
        "SET session_replication_role = replica",
        "INSERT INTO django_migrations (app, name, applied) VALUES ('sagas', 'mine', now())",
    ],
)
def test_the_application_role_may_not_change_the_schema_or_switch_off_guards(statement: str) -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as refused:
        cursor.execute(statement)
    assert isinstance(refused.value.__cause__, psycopg.errors.InsufficientPrivilege)


def test_migrating_without_the_owners_address_says_what_is_missing() -> None:
    from django.db import connections

    known = connections.settings.pop("owner")
    try:
        with pytest.raises(CommandError, match="set DATABASE_OWNER_URL"):
            call_command("migrate", database="owner")
    finally:
        connections.settings["owner"] = known


def test_a_sign_of_life_needs_no_login_and_no_database(client: Client) -> None:
    answer = client.get("/livez")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_pages_may_run_only_the_products_own_scripts_and_styles(client: Client) -> None:
    policy = client.get("/livez").headers["Content-Security-Policy"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == rules["style-src"] == ["'self'"]
    assert rules["frame-ancestors"] == rules["base-uri"] == ["'none'"]
    assert rules["img-src"] == ["'self'", "data:"]
