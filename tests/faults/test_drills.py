"""Drills through their command, on an arena of their own: one that passes, one whose expectation is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.drills import guide

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = guide.PAGE.read_text("utf-8").partition("```json\n")[2].partition("\n```")[0]


def written(folder: Path, name: str, **changes: Any) -> Path:
    """The guide's drill without what costs silence (a dead worker, a lost answer), and with changed expectations."""
    document = json.loads(EXAMPLE)
    del document["scenario"]["faults"], document["expected"]["audit_must_contain"]
    lost, refused = document["scenario"]["downstream"]
    assert lost["behaviour"] == "timeout-but-applied"
    document["scenario"]["downstream"] = [refused]
    document |= {"id": name}
    document["expected"] |= changes
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def manage(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "workbench.config.settings"}
    command = [sys.executable, "manage.py", "drill", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=540)


@pytest.mark.timeout(600)
def test_a_drill_passes_and_a_wrong_expectation_fails_with_its_first_difference(tmp_path: Path) -> None:
    good = written(tmp_path, "good")
    wrong = written(
        tmp_path, "wrong", actions={"s1": "compensated", "s2": "confirmed"}, workflow_state="compensated"
    )

    played = manage("run", good, wrong, "--json")

    lines = played.stdout.splitlines()
    assert played.returncode == 1, played.stderr
    assert any(line.startswith("ok   good: ") for line in lines), played.stdout
    assert any(line.startswith("FAIL wrong: expected s2 confirmed, is rejected (") for line in lines), (
        played.stdout
    )
    assert lines[-2] == "drills 1 passed, 1 failed"
    first, second = json.loads(lines[-1])
    assert (first["passed"], second["passed"]) == (True, False)
    assert second["differences"] == ["expected s2 confirmed, is rejected"]


def test_a_file_that_is_wrong_is_not_played(tmp_path: Path) -> None:
    path = written(tmp_path, "odd", workflow_state="finished")

    checked = manage("check", path)

    assert checked.returncode == 1
    assert "expected.workflow_state: `finished` is not allowed" in checked.stdout
    assert "Allowed: running, awaiting_approval," in checked.stdout
