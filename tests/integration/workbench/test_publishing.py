"""Publishing in spite of an error: refused, unless somebody waives it by code and reason, and that is kept."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sagas import api
from sagas.errors import BadWaiver, ErrorsFound, NotFound
from sagas.models import DefinitionVersion, Entry
from tests.integration.workbench.flows import ROOT
from tools.lint import Waiver
from tools.reader import read_definition
from workbench.labs import cast

SOURCES = ROOT / "examples" / "sources"
WHY = "The topic has no history to ask; its subscribers take doubles for one."


def run(*arguments: str | Path) -> str:
    out = StringIO()
    call_command(*[str(argument) for argument in arguments], stdout=out, stderr=StringIO())
    return out.getvalue()


def refused(*arguments: str | Path) -> tuple[str, str]:
    err = StringIO()
    with pytest.raises(CommandError) as stopped:
        call_command(*[str(argument) for argument in arguments], stdout=StringIO(), stderr=err)
    return str(stopped.value), err.getvalue()


@pytest.fixture
def order(tmp_path: Path, db_clean: None) -> Path:
    """An imported flow whose last step is irreversible and cannot be asked; its contracts are published."""
    run("workflows", "import", SOURCES / "aws-long-lived-order.json", "--out", tmp_path)
    folder = tmp_path / "aws_long_lived_order"
    run("contracts", "publish", folder / "contracts")
    return folder


def publish(folder: Path) -> list[str | Path]:
    return ["workflows", "publish", folder / "workflow.json", "--contracts", folder / "contracts"]


@pytest.mark.requirement("S2-17", "S0-82")
def test_an_error_keeps_a_workflow_from_being_published(order: Path) -> None:
    message, said = refused(*publish(order))

    assert message == "Nothing was published."
    assert "error W104: notify_success:" in said
    definition = read_definition(order / "workflow.json")
    with pytest.raises(ErrorsFound, match="W104"):
        api.publish_definition(definition, actor=cast.SYSTEM)
    with pytest.raises(NotFound):
        api.waivers(definition)


@pytest.mark.requirement("S2-17")
def test_a_waiver_is_kept_with_reason_and_author(order: Path) -> None:
    done = run(*publish(order), "--waive", "W104", "--reason", WHY)

    assert done == "aws_long_lived_order version 1: published, waived: W104\n"
    (waived,) = api.waivers(read_definition(order / "workflow.json"))
    assert (waived.code, waived.steps, waived.reason) == ("W104", ("notify_success",), WHY)
    assert (waived.by, waived.by_name) == ("command-line", "Command line")
    entry = Entry.objects.get(name="definition.waived")
    assert (entry.reason, entry.actor_id) == (WHY, "command-line")
    assert entry.after is not None
    assert (entry.after["code"], entry.after["steps"]) == ("W104", ["notify_success"])
    again = run(*publish(order), "--waive", "W104", "--reason", WHY)
    assert again.endswith("unchanged\n")
    assert Entry.objects.filter(name="definition.waived").count() == 1


@pytest.mark.parametrize(
    ("waiver", "why"),
    [
        (["--waive", "W101", "--reason", WHY], "W101 was not found here"),
        (["--waive", "W104", "--reason", " "], "W104: a waiver says why"),
        (["--waive", "W205", "--reason", WHY], "W205 is a warning"),
    ],
)
def test_a_waiver_that_lets_nothing_pass_publishes_nothing(order: Path, waiver: list[str], why: str) -> None:
    message, said = refused(*publish(order), *waiver)

    assert message == "Nothing was published."
    assert why in said
    assert not DefinitionVersion.objects.exists()


def test_each_waiver_has_its_reason(order: Path) -> None:
    assert "needs a --reason" in refused(*publish(order), "--waive", "W104")[0]
    assert "belongs to publish" in refused("workflows", "check", order, "--waive", "W104")[0]


def test_what_cannot_be_carried_out_cannot_be_waived(order: Path) -> None:
    workflow = order / "workflow.json"
    workflow.write_text(workflow.read_text().replace('"tool": "publish"', '"tool": "proclaim"'))

    message, said = refused(*publish(order), "--waive", "W001", "--reason", WHY)

    assert message == "Nothing was published."
    assert "W001 cannot be waived" in said
    with pytest.raises(BadWaiver):
        api.publish_definition(
            read_definition(workflow), actor=cast.SYSTEM, waivers=[Waiver(code="W001", reason=WHY)]
        )


def test_a_shipped_workflow_needs_no_waiver(db_clean: None) -> None:
    run("contracts", "publish", ROOT / "tools" / "catalog")
    run("workflows", "publish", ROOT / "examples" / "bank_opening.toml")

    assert api.waivers(read_definition(ROOT / "examples" / "bank_opening.toml")) == ()


def test_all_thirteen_chains_are_imported_at_once(tmp_path: Path) -> None:
    told = run("workflows", "import", SOURCES, "--out", tmp_path)

    assert len([path for path in tmp_path.iterdir() if (path / "workflow.json").is_file()]) == 13
    assert told.count("to be checked:") > 13


def test_one_broken_chain_and_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "chains"
    folder.mkdir()
    good = (SOURCES / "camunda-trip.json").read_text()
    (folder / "good.json").write_text(good)
    broken = folder / "broken.json"
    broken.write_text(good.replace('"system": "hotel"', '"sytem": "hotel"'))
    line = good[: good.index('"system": "hotel"')].count("\n") + 1

    message, said = refused("workflows", "import", folder, "--out", tmp_path / "out")

    assert message == "Nothing was imported."
    assert f"{broken}:{line}:" in said
    assert "Did you mean `system`?" in said
    assert not (tmp_path / "out").exists()
    assert "--out" in refused("workflows", "import", folder)[0]
