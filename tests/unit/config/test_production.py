"""What production settings refuse, and what they switch on."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.unit.config.production import COMPLETE, KEY, settings_in
from workbench.config.env import DEMO_KEY


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"DJANGO_SECRET_KEY": ""}, "DJANGO_SECRET_KEY must be set"),
        ({"DJANGO_SECRET_KEY": KEY[:49]}, "DJANGO_SECRET_KEY is too short"),
        ({"DJANGO_SECRET_KEY": "ab" * 40}, "DJANGO_SECRET_KEY is too short or too regular"),
        ({"DJANGO_SECRET_KEY": DEMO_KEY + KEY}, "DJANGO_SECRET_KEY is the key of a demo"),
        ({"DJANGO_DEBUG": "1"}, "DJANGO_DEBUG must not be set"),
        ({"SIMULATOR_ADMIN_URL": "http://127.0.0.1:1"}, "SIMULATOR_ADMIN_URL must not be set"),
        ({"AMENDS_FAULT_POINTS": "[]"}, "AMENDS_FAULT_POINTS must not be set"),
        ({"AMENDS_HOSTS": ""}, "AMENDS_HOSTS must be set"),
        ({"AMENDS_HOSTS": "*"}, "AMENDS_HOSTS must name the hosts"),
        ({"DATABASE_URL": ""}, "DATABASE_URL must be set"),
        (
            {"DATABASE_OWNER_URL": COMPLETE["DATABASE_URL"]},
            "DATABASE_URL and DATABASE_OWNER_URL name the same role",
        ),
        ({"REDIS_URL": ""}, "REDIS_URL must be set"),
        ({"AMENDS_INTERNAL_HOSTS": ""}, r"AMENDS_SYSTEMS reaches crm\.internal without encryption"),
        ({"AMENDS_SYSTEMS": '{"crm": "ftp://crm.internal/"}'}, "AMENDS_SYSTEMS reaches crm"),
        ({"AMENDS_CALLBACK_URL": "http://amends.example/"}, "AMENDS_CALLBACK_URL reaches amends"),
    ],
)
@pytest.mark.requirement("S4-25")
def test_production_does_not_start_with(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], said: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=said):
        settings_in(monkeypatch, **changes)


def test_a_refusal_does_not_repeat_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_in(monkeypatch, DJANGO_SECRET_KEY="short-but-secret")

    assert "short-but-secret" not in str(refused.value)


def test_a_complete_environment_starts_without_debugging_and_without_the_proving_ground(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = settings_in(monkeypatch, DATABASE_OWNER_URL="postgresql://amends_owner@db/amends")

    assert found["DEBUG"] is False
    assert "workbench.labs" not in found["INSTALLED_APPS"]
    assert found["STORAGES"]["staticfiles"]["BACKEND"].endswith("ManifestStaticFilesStorage")
    assert "WHITENOISE_USE_FINDERS" not in found
    assert found["APP_DB_ROLE"] == "amends_app"


def test_cookies_and_pages_stay_on_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_in(monkeypatch)

    for cookie in ("SESSION_COOKIE", "CSRF_COOKIE"):
        assert found[f"{cookie}_NAME"].startswith("__Host-")
        assert found[f"{cookie}_SECURE"] is True
        assert f"{cookie}_DOMAIN" not in found
        assert f"{cookie}_PATH" not in found
    assert found["SECURE_HSTS_SECONDS"] >= 31_536_000
    assert found["SECURE_SSL_REDIRECT"] is True
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://amends.example", "https://*.tools.example"]


def test_probes_are_answered_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_in(monkeypatch)["SECURE_REDIRECT_EXEMPT"] == ["^livez$", "^readyz$"]


def test_elsewhere_plain_addresses_and_the_simulator_are_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_in(
        monkeypatch,
        AMENDS_ENV="demo",
        AMENDS_INTERNAL_HOSTS="",
        SIMULATOR_ADMIN_URL="http://127.0.0.1:1",
        DJANGO_SECRET_KEY=DEMO_KEY + KEY,
    )

    assert found["TOOL_SYSTEMS"]["crm"] == "http://crm.internal:8080"
    assert "SESSION_COOKIE_NAME" not in found
