"""A complete production environment, and the settings that Django would read in it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

SETTINGS = Path(__file__).resolve().parents[3] / "workbench" / "config" / "settings.py"
KEY = "Zq3v-8LkWb2_xNfR5tYhJ7mPcD1sGaE4uVoXi9KzQwTr6BnMyH0"
COMPLETE = {
    "AMENDS_ENV": "production",
    "DJANGO_SECRET_KEY": KEY,
    "AMENDS_HOSTS": "amends.example,.tools.example",
    "DATABASE_URL": "postgresql://amends_app@db/amends",
    "REDIS_URL": "redis://valkey/0",
    "AMENDS_SYSTEMS": '{"stock": "https://stock.example/api", "crm": "http://crm.internal:8080"}',
    "AMENDS_INTERNAL_HOSTS": "crm.internal",
}


def settings_in(monkeypatch: pytest.MonkeyPatch, **changes: str) -> dict[str, Any]:
    """The names that the settings define in this environment and no other. Raises what they raise."""
    for name in list(os.environ):
        if name.startswith(("AMENDS_", "DJANGO_", "DATABASE_", "REDIS_", "SIMULATOR_")):
            monkeypatch.delenv(name)
    for name, value in {**COMPLETE, **changes}.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(SETTINGS))
