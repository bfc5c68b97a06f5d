"""Typed readers of the environment, the only configuration there is.

Must not import Django models or read anything but os.environ.
"""

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict


def text(name: str, default: str | None = None) -> str:
    """The value of `name`; raises ImproperlyConfigured when it is unset (or empty) and has no default."""
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"The environment variable {name} must be set.")
    return value


def one_of(name: str, allowed: tuple[str, ...], default: str) -> str:
    """The value of `name` or its default; raises ImproperlyConfigured when it is none of `allowed`."""
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def words(name: str, default: str | None) -> list[str]:
    """A comma-separated list without its empty parts."""
    return [word for part in text(name, default).split(",") if (word := part.strip())]


def string_map(name: str) -> dict[str, str]:
    """A JSON object whose values are strings; empty when unset."""
    try:
        value = json.loads(text(name, "{}"))
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f"{name} is not JSON: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ImproperlyConfigured(f"{name} must be a JSON object of strings.")
    return value


def database(name: str, default: str | None, session: Mapping[str, str]) -> dict[str, Any]:
    """A Django database entry from a PostgreSQL URL, with `session` set on every connection.

    libpq's own parser reads the URL: a socket folder may be given as the percent-encoded host.
    """
    try:
        parts = conninfo_to_dict(text(name, default))
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"{name} is not a PostgreSQL address: {error}") from error
    settings = " ".join(f"-c {key}={value}" for key, value in session.items())
    entry = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
    }
    options = {**parts, "options": f"{parts.get('options', '')} {settings}".strip()}
    return {**entry, "OPTIONS": options, "CONN_HEALTH_CHECKS": True, "CONN_MAX_AGE": 60}


def broker(name: str, default: str | None) -> str:
    """A broker URL for Celery; redis-py's `unix:///path?db=N` becomes Celery's `redis+socket://` form."""
    url = text(name, default)
    parts = urlsplit(url)
    if parts.scheme in ("redis", "rediss", "redis+socket"):
        return url
    if parts.scheme != "unix":
        raise ImproperlyConfigured(f"{name} must start with redis://, rediss:// or unix://.")
    credentials = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    query = f"?{parts.query.replace('db=', 'virtual_host=')}" if parts.query else ""
    return f"redis+socket://{credentials}{parts.path}{query}"
