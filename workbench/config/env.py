"""Typed readers of the environment, the only configuration there is.

Must not import Django models or read anything but os.environ.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

DEMO_KEY = "demo-"
"""How the key of a demo begins, so that production knows one when it sees one."""


def text(name: str, default: str | None = None) -> str:
    """The value of `name`; raises ImproperlyConfigured when it is unset (or empty) and has no default."""
    value = os.environ.get(name) or default
    if value is None:
        raise ImproperlyConfigured(f"The environment variable {name} must be set.")
    return value


def secret_key(name: str) -> str:
    """A key that nobody can know or guess; raises ImproperlyConfigured for a short one and for a demo's."""
    value = text(name)
    if value.startswith(DEMO_KEY):
        raise ImproperlyConfigured(f"{name} is the key of a demo.")
    if len(value) < 50 or len(set(value)) < 10:
        raise ImproperlyConfigured(f"{name} is too short or too regular: take 50 random characters or more.")
    return value


def none_of(*names: str) -> None:
    """Raises ImproperlyConfigured for a variable that has no place in production."""
    for name in names:
        if os.environ.get(name):
            raise ImproperlyConfigured(f"{name} must not be set in production.")


def hosts(name: str) -> list[str]:
    """Host names as Django takes them; raises ImproperlyConfigured for none and for the one that means any."""
    found = words(name, None)
    if "*" in found:
        raise ImproperlyConfigured(f"{name} must name the hosts; * would answer to any.")
    return found


def one_of(name: str, allowed: tuple[str, ...], default: str) -> str:
    """The value of `name` or its default; raises ImproperlyConfigured when it is none of `allowed`."""
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def count(name: str, default: int) -> int:
    """A whole number above zero; raises ImproperlyConfigured for anything else."""
    value = text(name, str(default))
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a whole number above zero.")
    return int(value)


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


def encrypted(name: str, urls: Iterable[str], internal: Collection[str]) -> None:
    """Raises ImproperlyConfigured for an address that is not https, unless its host is among `internal`."""
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in internal):
            continue
        raise ImproperlyConfigured(
            f"{name} reaches {parts.hostname} without encryption: use https, "
            f"or name the host in AMENDS_INTERNAL_HOSTS."
        )


def two_roles(application: str, owner: str) -> None:
    """Raises ImproperlyConfigured when the application's role is the owner's: its guards would bind nobody."""
    if application and application == owner:
        raise ImproperlyConfigured(f"DATABASE_URL and DATABASE_OWNER_URL name the same role, {owner}.")


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
    options = {"connect_timeout": "5", **parts, "options": f"{parts.get('options', '')} {settings}".strip()}
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
