"""The readers of the environment: what they accept, and what they say when they do not."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from workbench.config import env


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://cache:6379/2", "redis://cache:6379/2"),
        ("rediss://:secret@cache/0", "rediss://:secret@cache/0"),
        ("unix:///run/valkey.sock", "redis+socket:///run/valkey.sock"),
        (
            "unix://me:secret@/run/valkey.sock?db=3",
            "redis+socket://me:secret@/run/valkey.sock?virtual_host=3",
        ),
    ],
)
def test_a_broker_address_is_put_the_way_celery_reads_it(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    assert env.broker("REDIS_URL", None) == expected


def test_a_broker_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "amqp://queue")
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL must start with"):
        env.broker("REDIS_URL", None)


def test_a_database_address_may_name_a_socket_folder_and_keeps_its_own_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "DATABASE_URL",
        "postgresql://app:p%40ss@%2Frun%2Fpg/amends?sslmode=require&options=-c%20work_mem%3D8MB",
    )
    entry = env.database("DATABASE_URL", None, {"lock_timeout": "5s"})
    assert (entry["HOST"], entry["USER"], entry["PASSWORD"], entry["NAME"], entry["PORT"]) == (
        "/run/pg",
        "app",
        "p@ss",
        "amends",
        "",
    )
    assert entry["OPTIONS"] == {
        "connect_timeout": "5",
        "sslmode": "require",
        "options": "-c work_mem=8MB -c lock_timeout=5s",
    }


def test_what_is_not_a_database_address_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app@/amends?speed=high")
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not a PostgreSQL address"):
        env.database("DATABASE_URL", None, {})


@pytest.mark.parametrize("value", ["[]", "{", '{"stock": 4711}'])
def test_systems_are_an_object_of_addresses(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("AMENDS_SYSTEMS", value)
    with pytest.raises(ImproperlyConfigured, match="AMENDS_SYSTEMS"):
        env.string_map("AMENDS_SYSTEMS")


def test_what_has_no_default_must_be_set_and_empty_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SECRET_KEY", "")
    with pytest.raises(ImproperlyConfigured, match="DJANGO_SECRET_KEY must be set"):
        env.text("DJANGO_SECRET_KEY")
    assert env.text("DJANGO_SECRET_KEY", "given") == "given"


def test_a_wrong_choice_names_the_right_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENDS_ENV", "staging")
    with pytest.raises(ImproperlyConfigured, match="must be one of demo, production"):
        env.one_of("AMENDS_ENV", ("demo", "production"), "demo")
