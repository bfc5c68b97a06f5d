"""What is said twice says the same: names and files, documents and code, the README and the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from sagas import states
from sagas.management.commands.states import render as render_states
from sagas.states import MOVES, STATES, Machine
from tests.house.source import ROOT, texts
from tools.contract import ErrorClass
from tools.outcome import OutcomeKind
from tools.reader import definition_from_document
from workbench.commands import (
    COMMANDS,
    SIGNOFF_COMMANDS,
    SYSTEM_COMMANDS,
    Command,
    SignoffCommand,
    SystemCommand,
)
from workbench.management.commands.requirements import Requirement, collect, render, requirements

# Files of workbench/commands that are no verb: what people do at the command line.
NOT_VERBS = {
    "available",
    "pace",
    "people",
    "presence",
    "publishing",
    "sessions",
    "teams",
    "tokens",
    "views",
}
MACHINES = {
    Machine.RUN: states.RunState,
    Machine.ACTION: states.ActionState,
    Machine.COMPENSATION: states.CompensationState,
    Machine.HANDOFF: states.HandoffState,
    Machine.PERMIT: states.PermitState,
    Machine.PROPOSAL: states.ProposalState,
}


def documents() -> dict[str, str]:
    """Every Markdown file of the project."""
    return {name: text for name, text in texts().items() if name.endswith(".md")}


def targets_of_the_makefile() -> set[str]:
    """What `make` can be asked for."""
    return set(re.findall(r"^([a-z][a-z-]*):", texts()["Makefile"], re.MULTILINE))


def test_a_verb_is_its_file_its_class_attribute_and_its_name_in_the_registry() -> None:
    files = {path.stem for path in (ROOT / "workbench/commands").glob("[a-z]*.py")} - NOT_VERBS
    verbs: dict[str, type[Command[Any] | SignoffCommand[Any] | SystemCommand[Any]]] = {
        **COMMANDS,
        **SIGNOFF_COMMANDS,
        **SYSTEM_COMMANDS,
    }

    assert set(verbs) == files
    assert {verb: command.verb for verb, command in verbs.items()} == {verb: verb for verb in verbs}
    assert {verb: command.__module__.rpartition(".")[2] for verb, command in verbs.items()} == {
        v: v for v in verbs
    }


def test_the_law_lists_every_verb_as_independent() -> None:
    contracts = tomllib.loads(texts()["pyproject.toml"])["tool"]["importlinter"]["contracts"]
    (law,) = [one for one in contracts if one["name"] == "one verb knows nothing of another"]

    verbs = {*COMMANDS, *SIGNOFF_COMMANDS, *SYSTEM_COMMANDS}
    assert law["modules"] == sorted(f"workbench.commands.{verb}" for verb in verbs)


def test_the_law_protects_every_inside_of_the_engine() -> None:
    contracts = tomllib.loads(texts()["pyproject.toml"])["tool"]["importlinter"]["contracts"]
    (law,) = [one for one in contracts if one["name"] == "the engine is entered through its door"]
    modules = {
        f"sagas.{path.stem}" for path in (ROOT / "sagas").iterdir() if path.suffix == ".py" or path.is_dir()
    }
    open_to_all = {
        "sagas.__init__",
        "sagas.__pycache__",
        "sagas.alone",  # for the proving ground
        "sagas.apps",
        "sagas.faultpoints",  # names of places, which decide nothing
        "sagas.management",
        "sagas.migrations",
    }

    assert modules - open_to_all - set(law["protected_modules"]) == {
        "sagas.api",
        "sagas.facts",
        "sagas.readings",
        "sagas.states",
        "sagas.errors",
    }


def test_documents_name_only_make_targets_that_exist() -> None:
    code = [
        span
        for text in documents().values()
        for span in re.findall(r"`([^`]+)`|```[a-z]*\n(.*?)```", text, re.DOTALL)
    ]
    named = {target for one in code for target in re.findall(r"\bmake ([a-z][a-z-]*)", " ".join(one))}

    assert {"demo", "test", "check"} <= named
    assert named <= targets_of_the_makefile()


def test_documents_name_only_management_commands_that_exist() -> None:
    there = {path.stem for path in ROOT.glob("[a-z]*/**/management/commands/*.py")} | {
        "check",
        "collectstatic",
        "migrate",
    }
    named = {
        command for text in documents().values() for command in re.findall(r"manage\.py ([a-z_]+)", text)
    }

    assert named <= there


def test_links_and_pictures_of_documents_lead_somewhere() -> None:
    dead = [
        (name, target)
        for name, text in documents().items()
        for target in re.findall(r"\]\(([^)#\s]+)", text)
        if "://" not in target and not (ROOT / name).parent.joinpath(target).exists()
    ]

    assert dead == []


@pytest.mark.parametrize(
    "name", ["README.md", "docs/architecture.md", "docs/operations.md", "docs/contracts.md"]
)
def test_documents_name_only_files_that_exist(name: str) -> None:
    spans = re.findall(
        r"`((?:tools|sagas|workbench|templates|tests|docs|examples|requirements)/[\w./-]*)`", texts()[name]
    )

    assert [span for span in spans if not (ROOT / span).exists()] == []


def test_the_environment_that_the_readme_lists_is_the_one_that_settings_read() -> None:
    read = set(re.findall(r"env\.(?!none_of)\w+\(\s*\"([A-Z_]+)\"", texts()["workbench/config/settings.py"]))
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", texts()["README.md"], re.MULTILINE))

    assert listed == read


def test_the_readme_names_every_target_of_the_makefile_once_at_least() -> None:
    assert {
        name for name in targets_of_the_makefile() if f"`make {name}" not in texts()["README.md"]
    } == set()


def test_every_line_that_is_logged_is_explained_to_whoever_operates_it() -> None:
    logged = {
        event
        for name, text in texts().items()
        if name.endswith(".py")
        and name.startswith(("sagas/", "workbench/"))
        and not name.startswith("workbench/labs/")
        for event in re.findall(r"\blog\.(?:info|warning|error|exception)\(\s*\"([^\"]+)\"", text)
    }

    assert len(logged) > 5
    assert {event for event in logged if f"`{event}`" not in texts()["docs/operations.md"]} == set()


def test_every_alarm_is_explained_to_whoever_operates_it() -> None:
    codes = re.findall(
        r'^        "([a-z_]+\.[a-z_]+)",$|^    \("([a-z_]+\.[a-z_]+)",',
        texts()["sagas/alarms.py"],
        re.MULTILINE,
    )

    assert len(codes) > 5
    assert {
        code for pair in codes for code in pair if code and f"`{code}`" not in texts()["docs/operations.md"]
    } == set()


def test_every_reason_of_a_handoff_is_explained_to_whoever_operates_it() -> None:
    from sagas.reasons import Reason

    assert [reason for reason in Reason if f"`{reason}`" not in texts()["docs/operations.md"]] == []


def test_the_example_in_the_document_of_contracts_is_a_sound_definition() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", texts()["docs/contracts.md"], re.DOTALL)

    definition = definition_from_document(tomllib.loads(example))

    assert [step.tool for step in definition.steps] == ["reserve_stock"]
    assert definition.end_states


def test_the_page_of_states_is_up_to_date() -> None:
    assert texts()["docs/states.md"] == render_states()


@pytest.mark.requirement("S3-2", "S3-3")
def test_every_machine_has_an_enumeration_of_its_own_and_the_tables_use_no_other_word() -> None:
    assert {machine: tuple(words) for machine, words in MACHINES.items()} == STATES
    assert len({id(words) for words in MACHINES.values()}) == len(Machine)
    for machine, words in MACHINES.items():
        moves = [move for move in MOVES if move.machine is machine]
        assert {move.target for move in moves} == {str(word) for word in words}
        assert {move.source for move in moves} - {None} <= {str(word) for word in words}
    needed = {"prepared", "sent", "confirmed", "rejected", "unknown", "compensated"}
    assert needed <= {str(state) for state in states.ActionState}


@pytest.mark.requirement("S4-17")
def test_no_verb_and_no_move_ends_a_run_past_its_compensations() -> None:
    verbs = {*COMMANDS, *SIGNOFF_COMMANDS, *SYSTEM_COMMANDS}
    ends = {(move.verb, move.target) for move in states.RUN_MOVES if move.target in states.FINAL_RUN_STATES}
    from_compensating = {
        move.target for move in states.RUN_MOVES if move.source == states.RunState.COMPENSATING
    }

    assert verbs.isdisjoint(
        {"cancel", "terminate", "abort", "reset", "redrive", "clear", "archive", "delete", "timeout"}
    )
    assert ends == {
        ("complete", "completed"),
        ("close_accepted", "closed_accepted"),
        ("compensated", "compensated"),
        ("fail_clean", "failed_clean"),
    }
    assert from_compensating & states.FINAL_RUN_STATES == {
        states.RunState.COMPENSATED,
        states.RunState.FAILED_CLEAN,
        # Only where a person left out what had been tried and failed: tests/unit/sagas/test_planner.py.
        states.RunState.CLOSED_ACCEPTED,
    }


@pytest.mark.requirement("S1-18", "S3-2")
def test_the_outcome_of_a_call_and_the_state_of_an_action_are_vocabularies_apart() -> None:
    assert not issubclass(OutcomeKind, states.ActionState)
    assert all(issubclass(words, StrEnum) for words in (OutcomeKind, ErrorClass, *MACHINES.values()))
    told_apart = {"validation", "permission", "no_answer", "refused", "partial", "conflict"}
    assert told_apart <= {str(word) for word in ErrorClass}


def test_every_requirement_is_read_from_its_page_once() -> None:
    known = requirements(texts()["docs/requirements.md"])
    ids = [requirement.id for requirement in known]

    assert len(ids) == len(set(ids))
    assert {
        group: sum(one.startswith(f"{group}-") for one in ids) for group in ("S0", "S1", "S2", "S3", "S4")
    } == {
        "S0": 90,
        "S1": 27,
        "S2": 21,
        "S3": 22,
        "S4": 29,
    }
    assert next(one for one in known if one.id == "S0-58").text == "Metrics exist: compensation_success_rate"


def test_every_marker_names_requirements_that_exist() -> None:
    known = {requirement.id for requirement in requirements(texts()["docs/requirements.md"])}
    marks, faults = collect(ROOT / "tests", ROOT)

    assert faults == []
    assert [mark for mark in marks if mark.id not in known] == []


PLANTED = """
import pytest

pytestmark = pytest.mark.requirement("S1-1")


@pytest.mark.requirement("S1-2", "S1-3")
def test_one() -> None: ...


@pytest.mark.requirement("S1-4")
class TestMany:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("S1-5"))])
    def test_two(self, x: int) -> None: ...


@pytest.mark.requirement("S1-" + "6")
def test_three() -> None: ...


@pytest.mark.requirement("S1-7")
def helper() -> None: ...
"""


def test_markers_are_found_wherever_they_may_stand_and_faults_named(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(PLANTED)

    marks, faults = collect(tmp_path, tmp_path)

    assert {(mark.id, mark.test.partition("::")[2]) for mark in marks} == {
        ("S1-1", "test_one"),
        ("S1-1", "TestMany::test_two"),
        ("S1-1", "test_three"),
        ("S1-2", "test_one"),
        ("S1-3", "test_one"),
        ("S1-4", "TestMany::test_two"),
        ("S1-5", "TestMany::test_two"),
    }
    assert faults == [
        'test_planted.py:17: a requirement is named by a literal id, such as "S2-10"',
        "test_planted.py:21: this marker belongs to no test",
    ]


def test_an_id_without_a_test_is_open() -> None:
    known = (
        Requirement(id="S1-1", section="S1 — one", text="Something holds."),
        Requirement(id="S1-2", section="S1 — one", text="Something else holds."),
    )

    page = render(known, {"S1-1": ["tests/test_x.py::test_it"], "S1-2": []})

    assert "| S1-1 | Something holds. | tests/test_x.py: `test_it` |" in page
    assert "| S1-2 | Something else holds. | open |" in page
    assert page.endswith("\nopen: 1\n")


def test_the_table_of_requirements_needs_neither_database_nor_broker() -> None:
    nowhere = {
        "PATH": "",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/nothing",
        "REDIS_URL": "redis://127.0.0.1:9/0",
        "PYTHONUTF8": "1",
    }

    done = subprocess.run(
        [sys.executable, "manage.py", "requirements", "--check"],
        cwd=ROOT,
        env=nowhere,
        capture_output=True,
        text=True,
    )

    assert (
        re.search(r"^open: \d+$", done.stdout, re.MULTILINE)
        or "docs/traceability.md is out of date" in done.stderr
    )
