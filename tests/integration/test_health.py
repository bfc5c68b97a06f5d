"""The probes and the checks of the deployment, on the real database and broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.checks import Error, Warning, run_checks
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.test import Client
from pytest_django import Settings
from redis import Redis

from sagas import api, health, relay
from sagas.executor import DRAIN_S, drain_due
from sagas.ledger import ears, workers
from tests.conftest import Clock

ALL = ["database", "migrations", "broker", "sweep", "workers", "outbox"]
NOWHERE = "redis+socket:///nonexistent/valkey.sock"

pytestmark = pytest.mark.usefixtures("db_clean")


@pytest.fixture
def sweeping() -> str:
    """An incarnation of the sweep that has just beaten."""
    owner = workers.enrol("sweep")
    assert workers.beat(owner)
    return owner


@pytest.fixture
def broker() -> Iterator[Redis]:
    with relay.broker() as client:
        yield client
        client.config_set("maxmemory-policy", "noeviction")


def ready(client: Client, *exclude: str) -> tuple[int, dict[str, Any]]:
    answer = client.get("/readyz", {"exclude": list(exclude)})
    return answer.status_code, answer.json()


def failing(client: Client) -> list[str]:
    """The checks that do not hold; the status has to agree."""
    status, said = ready(client)
    bad = [name for name, check in said["checks"].items() if not check["ok"]]
    assert (status, said["ready"]) == ((503, False) if bad else (200, True))
    return bad


def test_ready_needs_no_login_and_names_every_check(client: Client, sweeping: str) -> None:
    status, said = ready(client)

    assert (status, said["ready"]) == (200, True), said
    assert list(said["checks"]) == ALL
    assert said["checks"]["sweep"]["seen_s"] < 5
    assert said["checks"]["outbox"]["lag_s"] == 0


def test_the_answer_is_never_kept_and_names_no_address(client: Client, sweeping: str) -> None:
    answer = client.get("/readyz")

    assert "no-store" in answer.headers["Cache-Control"]
    for url in (django_settings.CELERY_BROKER_URL, connection.settings_dict["HOST"]):
        assert url not in answer.content.decode()
    assert str(connection.settings_dict["PASSWORD"]) not in answer.content.decode()


def test_without_a_sweep_it_is_not_ready_unless_the_probe_leaves_it_out(client: Client) -> None:
    assert failing(client) == ["sweep"]

    status, said = ready(client, "sweep")

    assert (status, "sweep" in said["checks"]) == (200, False)


def test_a_sweep_that_is_silent_and_one_that_has_ended_do_not_count(
    client: Client, sweeping: str, clock_of_tests: Clock
) -> None:
    clock_of_tests.put_forward(20)
    assert failing(client) == ["sweep"]
    assert api.health().workers_alive == 0

    fresh = workers.enrol("sweep")
    assert failing(client) == []
    workers.sign_off(fresh)
    workers.sign_off(sweeping)

    assert failing(client) == ["sweep"]
    assert api.health().sweep_seen_s is None


def test_a_worker_that_is_connected_and_takes_no_bell_is_told_from_one_that_has_nothing_to_do(
    client: Client, sweeping: str, clock_of_tests: Clock
) -> None:
    def later(seconds: float) -> None:
        clock_of_tests.put_forward(seconds)
        ears.rang()

    for _ in range(3):
        later(ears.RING_EVERY_S)
    assert "workers" not in failing(client)  # not for long enough
    ears.rang()
    for _ in range(4):
        later(ears.RING_EVERY_S)
    assert "workers" in failing(client)
    assert "worker.deaf" in {alarm.code for alarm in api.alarms()}

    ears._marked = 0.0
    assert drain_due() == 0  # nothing is due; the bell was heard
    assert "workers" not in failing(client)
    assert "worker.deaf" not in {alarm.code for alarm in api.alarms()}
    assert len(api.health().hearing.ears) == 1

    # Nobody rings for an hour, so nobody can be deaf; the first bell after it does not count yet.
    clock_of_tests.put_forward(3600)
    ears.rang()
    assert "workers" not in failing(client)


def test_one_deaf_worker_among_others_is_named_until_it_ends(
    client: Client, clock_of_tests: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hear(place: str) -> None:
        monkeypatch.setattr(ears, "place_of", lambda process: place)
        monkeypatch.setattr(ears, "_marked", 0.0)
        ears.heard()

    hear("deaf:1")
    for _ in range(20):
        clock_of_tests.put_forward(ears.RING_EVERY_S)
        ears.rang()
        hear("well:2")

    assert [(alarm.code, alarm.count) for alarm in api.alarms() if alarm.code == "worker.deaf"] == [
        ("worker.deaf", 1)
    ]
    heard = dict(api.health().hearing.ears)
    assert heard["deaf:1"] > 200 > heard["well:2"]
    ears.left("deaf:1")
    assert "worker.deaf" not in {alarm.code for alarm in api.alarms()}


def test_an_event_that_waits_too_long_shows_in_outbox(
    client: Client, sweeping: str, fresh_database: str
) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO sagas_outbox (run_id, seq_from, seq_to, created_at, tries, problem) "
            "VALUES (1, 1, 1, now_() - interval '61 seconds', 0, '')"
        )

    assert failing(client) == ["outbox"]
    assert api.health().outbox_lag_s > 60
    assert [alarm.code for alarm in api.health().alarms] == ["outbox.lagging"]


def test_without_the_broker_it_is_not_ready(client: Client, sweeping: str, settings: Settings) -> None:
    settings.CELERY_BROKER_URL = NOWHERE

    assert failing(client) == ["broker"]


def test_a_broker_that_evicts_is_named(client: Client, sweeping: str, broker: Redis) -> None:
    broker.config_set("maxmemory-policy", "allkeys-lru")

    assert failing(client) == ["broker"]
    assert "allkeys-lru" in ready(client)[1]["checks"]["broker"]["detail"]


def test_a_migration_that_is_missing_is_counted(client: Client, sweeping: str, fresh_database: str) -> None:
    with psycopg.connect(fresh_database, autocommit=True) as owner:
        row = owner.execute(
            "DELETE FROM django_migrations WHERE id = (SELECT max(id) FROM django_migrations) "
            "RETURNING id, app, name, applied"
        ).fetchone()
        try:
            assert failing(client) == ["migrations"]
        finally:
            owner.execute(
                "INSERT INTO django_migrations (id, app, name, applied) OVERRIDING SYSTEM VALUE "
                "VALUES (%s, %s, %s, %s)",
                row,
            )


def test_without_the_database_it_says_so_and_stays_alive(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OperationalError("connection to server at 10.0.0.5 failed: password=secret")

    monkeypatch.setattr(connection, "cursor", refuse)
    monkeypatch.setattr(connection, "ensure_connection", refuse)
    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert failing(client) == ["database", "migrations", "sweep", "workers", "outbox"]
    assert "10.0.0.5" not in answer.content.decode()
    assert client.get("/livez").status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_probe_only_reads(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
    assert client.head(path).status_code in (200, 503)


def test_the_command_line_says_the_same(sweeping: str) -> None:
    out = StringIO()
    call_command("health", "sweep", "outbox", stdout=out)

    assert [line.split()[:2] for line in out.getvalue().splitlines()] == [["ok", "sweep"], ["ok", "outbox"]]


def test_the_command_fails_with_the_check_and_knows_its_checks() -> None:
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1 checks do not hold"):
        call_command("health", "sweep", stdout=out)
    assert out.getvalue().startswith("NOT sweep seen_s=None no sweep runs")
    with pytest.raises(CommandError, match="There is no check wep"):
        call_command("health", "wep")


# --- The checks of the deployment -----------------------------------------------------------------------------------


def found() -> list[str]:
    return [str(fault.id) for fault in run_checks(tags=["amends"], include_deployment_checks=True)]


def test_an_installation_in_order_passes() -> None:
    assert found() == []


def test_the_hard_limit_lies_above_the_longest_call_that_is_published(
    shelf: Callable[[], None], settings: Settings
) -> None:
    shelf()
    longest = health.longest_tool_limit_s()
    assert longest >= 2.0
    settings.CELERY_TASK_TIME_LIMIT = DRAIN_S + longest

    assert found() == ["sagas.E001"]

    settings.CELERY_TASK_TIME_LIMIT += 1
    assert found() == []


@pytest.mark.requirement("S4-25")
def test_a_role_that_could_drop_the_guards_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not health.owns_tables()

    as_owner = connections.create_connection("owner")
    monkeypatch.setattr(health, "connection", as_owner)
    try:
        assert found() == ["sagas.E002"]
    finally:
        as_owner.close()


def test_a_broker_that_evicts_is_an_error_and_one_that_is_gone_a_warning(
    broker: Redis, settings: Settings
) -> None:
    broker.config_set("maxmemory-policy", "volatile-ttl")
    (evicting,) = run_checks(tags=["amends"], include_deployment_checks=True)
    settings.CELERY_BROKER_URL = NOWHERE
    (gone,) = run_checks(tags=["amends"], include_deployment_checks=True)

    assert (type(evicting), evicting.id) == (Error, "sagas.E003")
    assert (type(gone), gone.id) == (Warning, "sagas.W003")


def test_nothing_is_asked_of_the_database_by_an_ordinary_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(health, "connection", refuse)
    assert run_checks(tags=["amends"]) == []
