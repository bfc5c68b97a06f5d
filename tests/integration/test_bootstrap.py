"""The way from a bare machine to .venv, and the locks it installs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from workbench import bootstrap

CLONE = Path(__file__).resolve().parent.parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    text = (CLONE / "requirements" / f"{name}.txt").read_text()
    return {package.lower(): version for package, version in PIN.findall(text)}


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_version_manager_shim_that_fails_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "python3.13", "echo 'not installed' >&2; exit 127")
    script(tmp_path / "python3", f'exec {sys.executable} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.delenv("PYTHON", raising=False)
    monkeypatch.setattr(bootstrap, "PROVEN", ("python3.13", "python3"))
    assert bootstrap.find_interpreter() == str(tmp_path / "python3")


def test_an_interpreter_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = script(tmp_path / "python3", "exit 1")
    assert not bootstrap.runs_and_is_new_enough(str(old))
    assert bootstrap.runs_and_is_new_enough(sys.executable)


def test_the_interpreter_that_a_person_names_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON", "/my/python")
    assert next(bootstrap.candidates()) == "/my/python"


def test_without_any_interpreter_the_message_names_three_ways_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    monkeypatch.setattr(bootstrap, "VENV_PYTHON", str(tmp_path / "none"))
    monkeypatch.setattr(bootstrap, "candidates", lambda: iter(()))
    assert bootstrap.main("run") == 1
    said = capsys.readouterr().err
    assert said.count("\n  - ") == 3
    assert "3.12" in said


def test_a_changed_lock_is_installed_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    monkeypatch.setattr(bootstrap, "STAMP", str(tmp_path / "stamp"))
    monkeypatch.setattr(subprocess, "call", lambda command: 0)
    for name in ("run", "dev", "bootstrap"):
        (tmp_path / "requirements" / f"{name}.txt").write_text(name)
    assert not bootstrap.installed("run")
    bootstrap.install("dev")
    assert bootstrap.installed("run")
    assert bootstrap.installed("dev")
    (tmp_path / "requirements" / "run.txt").write_text("other pins")
    assert not bootstrap.installed("run")


def test_the_bootstrap_asks_for_nothing_newer_than_python_3_8() -> None:
    """Its text is compiled by that grammar; what it imports is the standard library."""
    import ast

    tree = ast.parse((CLONE / "workbench" / "bootstrap.py").read_text(), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("name", ["run", "dev", "bootstrap"])
def test_every_pin_is_hashed_and_no_host_is_named(name: str) -> None:
    text = (CLONE / "requirements" / f"{name}.txt").read_text()
    blocks = [block for block in re.split(r"\n(?=\S)", text) if block.strip()]
    assert blocks
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "index" not in text.replace("importlib", "")


def test_the_locks_hold_what_the_project_asks_for() -> None:
    """A resolver may fall back to an older Django without a word."""
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["embedded"]
    run, dev = pins("run"), pins("dev")
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(run[requirement.name.lower()]), requirement
    for requirement in map(Requirement, project["dependency-groups"]["dev"]):
        assert requirement.specifier.contains(dev[requirement.name.lower()]), requirement
    assert run["django"].startswith("6.1.")
    assert run.items() <= dev.items()
