"""Fault points: a closed list, each placed once it is named, and nothing at all in a process that was not armed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sagas import faultpoints
from sagas.faultpoints import COMMITS, POINTS, BadPlan, Injected, Plan
from sagas.states import MOVES

ROOT = Path(__file__).resolve().parents[3]
OF_A_COMMIT = ("before_commit", "after_commit", "commit_lost")


@pytest.fixture(autouse=True)
def nothing_left_planned() -> Iterator[None]:
    yield
    faultpoints.plan()


def product() -> str:
    """The product's own source, but for the list itself."""
    files = [*ROOT.glob("sagas/**/*.py"), *ROOT.glob("workbench/**/*.py")]
    return "\n".join(
        path.read_text() for path in files if path.name != "faultpoints.py" and "labs" not in path.parts
    )


def test_every_point_that_is_listed_is_placed_and_every_placed_one_is_listed() -> None:
    source = product()
    stages = re.findall(r'passing\("(\w+)"\)', (ROOT / "tools" / "world.py").read_text())
    placed = {
        *re.findall(r'faultpoints\.reach\(\s*"([\w.]+)"', source),
        *(f"call.{stage}" for stage in stages),
    }
    marked = set(re.findall(r'faultpoints\.mark\(\s*"(\w+)"', source)) | set(faultpoints._MOVES.values())

    assert placed == {name for name in POINTS if name.partition(".")[2] not in OF_A_COMMIT}
    assert marked == set(COMMITS)


def test_the_moves_that_mark_a_commit_are_moves_of_the_tables() -> None:
    moves = {(move.machine.value, move.verb) for move in MOVES}

    assert set(faultpoints._MOVES) <= moves


def test_every_commit_has_a_point_before_it_after_it_and_for_its_lost_answer() -> None:
    for what in COMMITS:
        assert {f"{what}.{when}" for when in OF_A_COMMIT} <= set(POINTS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ('{"point": "sent.after_commit"}', "a JSON list"),
        ('[{"point": "nowhere"}]', "no fault point 'nowhere'"),
        ('[{"point": "call.answered", "do": "explode"}]', "do is one of"),
        ('[{"point": "call.answered", "do": "lose"}]', "lose goes with"),
        ('[{"point": "sent.commit_lost", "do": "kill"}]', "lose goes with"),
        ('[{"point": "call.answered", "when": 3}]', "no field 'when'"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_at_the_start(text: str, said: str) -> None:
    with pytest.raises(BadPlan, match=said):
        faultpoints.read(text)


def test_a_plan_fires_where_everything_that_it_names_fits_and_once() -> None:
    faultpoints.plan(Plan(point="call.answered", do="raise", tool="pay", direction="compensation", nth=2))

    faultpoints.reach("call.answered", tool="pay", direction="forward")
    faultpoints.reach("call.before_connect", tool="pay", direction="compensation")
    faultpoints.reach("call.answered", tool="pay", direction="compensation")
    with pytest.raises(Injected):
        faultpoints.reach("call.answered", tool="pay", direction="compensation")
    faultpoints.reach("call.answered", tool="pay", direction="compensation")


def test_a_file_makes_sure_that_one_process_alone_is_struck(tmp_path: Path) -> None:
    once = str(tmp_path / "struck")
    faultpoints.plan(Plan(point="relay.read", do="raise", once_file=once))
    with pytest.raises(Injected):
        faultpoints.reach("relay.read")

    faultpoints.plan(Plan(point="relay.read", do="raise", once_file=once))
    faultpoints.reach("relay.read")


def run(armed: str | None, program: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != faultpoints.VARIABLE}
    if armed is not None:
        environment[faultpoints.VARIABLE] = armed
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


REACH = "from sagas import faultpoints as f; f.reach('relay.read'); print('alive')"


def test_the_environment_kills_a_process_at_its_point() -> None:
    struck = run(json.dumps([{"point": "relay.read", "do": "kill"}]), REACH)

    assert (struck.returncode, struck.stdout) == (-signal.SIGKILL, "")
    assert run("[]", REACH).stdout == "alive\n"


def test_without_the_variable_nothing_can_be_planned_at_all() -> None:
    refused = run(None, "from sagas import faultpoints as f; f.plan(f.Plan(point='relay.read'))")

    assert "BadPlan: this process was started without" in refused.stderr
    assert run(None, REACH).stdout == "alive\n"
