"""Points the Django of a process that runs already at other servers, for as long as a block lasts."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections

from workbench.config import celery_app
from workbench.labs.embedded import CLONE

_READ_FRESH = (
    "SECRET_KEY",
    "TOOL_SYSTEMS",
    "CALLBACK_URL",
    "CALLBACK_SECRETS",
    "SIMULATOR_ADMIN_URL",
    "CELERY_BROKER_URL",
    "COMMANDS_A_MINUTE",
)


@contextmanager
def django_at(environment: Mapping[str, str]) -> Iterator[None]:
    """Have this process's Django work on the arena: its settings are read anew, its connections are replaced."""
    before = {name: os.environ.get(name) for name in environment}
    kept = {name: getattr(settings, name) for name in _READ_FRESH}
    databases = dict(connections.settings)
    os.environ.update(environment)
    fresh = runpy.run_path(str(CLONE / "workbench" / "config" / "settings.py"))
    _replace_databases(connections.configure_settings(fresh["DATABASES"]))
    _replace_settings({name: fresh[name] for name in _READ_FRESH})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _replace_databases(databases)
        _replace_settings(kept)


def _replace_databases(found: dict[str, Any]) -> None:
    for alias in list(connections.settings):
        with suppress(psycopg.Error):
            connections[alias].close()
        del connections[alias]
    connections.settings.clear()
    connections.settings.update(found)


def _replace_settings(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    celery_app.conf.update(broker_url=values["CELERY_BROKER_URL"])
