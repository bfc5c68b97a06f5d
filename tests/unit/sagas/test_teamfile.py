"""A team's file is read whole or refused with every fault at its line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from sagas.escalation import Level
from sagas.teamfile import read_team, team_from_document
from tools.problems import FileProblems

ROOT = Path(__file__).resolve().parents[3]
GOOD = """\
name = "accounts"
time_zone = "Europe/London"
holidays = ["2026-12-25"]
remind_at = 0.25

[hours]
mon = ["13:00-17:00", "09:00-12:00"]
sun = ["22:00-06:00"]

[[chain]]
to = "lead"

[[chain]]
to = "duty_manager"
minutes = 90
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "team.toml"
    path.write_text(text)
    return path


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(FileProblems) as refused:
        read_team(written(tmp_path, text))
    return [f"{problem.line}:{problem.where}: {problem.message}" for problem in refused.value.problems]


def test_a_team_is_read_with_its_hours_in_order_and_over_midnight(tmp_path: Path) -> None:
    team, document = read_team(written(tmp_path, GOOD))

    assert team.worktime.hours[0] == [(0, 360), (540, 720), (780, 1020)]
    assert team.worktime.hours[6] == [(1320, 1440)]
    assert team.worktime.holidays == {date(2026, 12, 25)}
    assert team.chain == (Level(to="lead"), Level(to="duty_manager", minutes=90))
    assert (team.title, team.remind_at) == ("accounts", 0.25)
    again = team_from_document(document, version=4)
    assert (again.digest, again.version) == (team.digest, 4)


def test_hours_may_be_always(tmp_path: Path) -> None:
    team, _ = read_team(written(tmp_path, 'name = "network"\ntime_zone = "UTC"\nhours = "always"\n'))

    assert team.worktime.always
    assert [level.to for level in team.chain] == ["lead", "duty_manager"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"Europe/London"', '"Europe/Lundon"', "2:time_zone: `Europe/Lundon` is no time zone"),
        ('"09:00-12:00"', '"09:00-14:00"', "7:hours.mon: two spans of mon lie over each other"),
        ('"09:00-12:00"', '"9-12"', "7:hours.mon[1]: '9' is no time of day between 00:00 and 24:00"),
        ("mon =", "monday =", "7:hours.monday: `monday` is no weekday"),
        ('"2026-12-25"', '"2026-13-25"', "3:holidays[0]: `2026-13-25` is no date"),
        ('"2026-12-25"', '"20261225"', "3:holidays[0]: `20261225` is no date"),
        ('"duty_manager"', '"lead"', "14:chain[1].to: `lead` stands in the chain twice"),
        ("minutes = 90", "minutes = -1", "15:chain[1].minutes: -1 is out of range"),
        ("remind_at = 0.25", "remind_at = 2", "4:remind_at: 2 is out of range"),
        ('name = "accounts"', 'name = "Accounts"', "1:name: `Accounts` is malformed"),
        ('name = "accounts"', 'names = "accounts"', "1:names: `names` is not known here"),
    ],
)
def test_a_fault_is_named_at_its_place(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert fault in faults(tmp_path, GOOD.replace(old, new, 1))


def test_a_team_without_any_hours_is_refused(tmp_path: Path) -> None:
    text = 'name = "a"\ntime_zone = "UTC"\n[hours]\nmon = []\n'

    assert faults(tmp_path, text) == ["3:hours: no weekday has any hours"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples" / "teams").glob("*.toml")), ids=lambda path: path.stem
)
def test_the_shipped_teams_are_in_order(path: Path) -> None:
    team, _ = read_team(path)

    assert team.name == path.stem
