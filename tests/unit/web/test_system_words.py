"""The system page in words: what could not be read is never shown as well, and each alarm says what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from sagas import alarms
from sagas.api import Alarm
from sagas.facts import GateFacts
from sagas.readings import (
    BrokerSeen,
    Counted,
    DatabaseSeen,
    OutboxSeen,
    Outstanding,
    ReconciliationSeen,
    SystemLately,
    Waiting,
    WorkerSeen,
)
from tests import builders
from workbench.queries.system import Part, Vitals
from workbench.web.presenters import gates
from workbench.web.presenters import system as words
from workbench.web.presenters.alarm_words import REMEDIES

OPERATIONS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


def part[Value](value: Value | None) -> Part[Value]:
    return Part(value=value, read_at=builders.NOW + timedelta(seconds=1), took_ms=3.2)


def worker(left: float = 4.0) -> WorkerSeen:
    return WorkerSeen(
        id="worker-1",
        kind="worker",
        place="a:1",
        started_at=builders.NOW,
        lease_left_s=left,
        beat_s=1,
        runs=2,
    )


def well() -> Vitals:
    """Everything read, everything within its limits."""
    return Vitals(
        workers=part((worker(),)),
        waiting=part(Waiting(due=0, oldest_s=0, held=0)),
        broker=part(BrokerSeen(bells=0, unheard_s=0, policy="noeviction")),
        outbox=part(OutboxSeen(waiting=0, oldest_s=0, parked=0)),
        unknown=part(Counted(count=0, since=None)),
        outstanding=part(Outstanding(all=0, dangling=0, since=None, with_people=0)),
        reconciliation=part(
            ReconciliationSeen(
                finished_at=builders.NOW - timedelta(minutes=2),
                looked=9,
                confirmed=9,
                drift=0,
                unread=0,
                running_since=None,
            )
        ),
        database=part(DatabaseSeen(version="18.1", connections=9, allowed=100, ahead_s=0.3)),
        alarms=part(()),
    )


def gate(**given: Any) -> GateFacts:
    """A gate that lets everything through and where nobody waits."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("closed_until", "paused_at", "per_second", "at_once", "waiting_since"), None
    )
    return GateFacts(**{"tool": "send_notice", "paused_why": "", "waiting": 0, **nothing, **given})


def shown(seen: Vitals) -> words.System:
    return words.system(seen, part(()), part(()), (), clock=builders.clock())


def tile(seen: Vitals, name: str) -> words.Tile:
    (found,) = [one for one in shown(seen).panel.tiles if one.name == name]
    return found


def test_all_is_well_only_when_every_part_was_read_and_none_is_over_its_limit() -> None:
    page = shown(well())

    assert [one.icon for one in page.panel.tiles] == ["ok"] * 8
    assert page.panel.summary == "No alarm is in force."
    assert {one.read_at for one in page.panel.tiles} == {
        builders.clock().time(builders.NOW + timedelta(seconds=1))
    }


@pytest.mark.parametrize("name", [one for one in Vitals.__dataclass_fields__ if one != "alarms"])
def test_a_part_that_was_not_read_says_so_and_hides_no_other(name: str) -> None:
    page = shown(replace(well(), **{name: part(None)}))

    unread = [one for one in page.panel.tiles if one.value == "not read"]
    assert [(one.icon, one.about) for one in unread] == [("unk", "This part did not answer.")]
    assert [one.icon for one in page.panel.tiles].count("ok") == 7
    assert "1 part could not be read." in page.panel.summary


def test_alarms_that_were_not_read_are_not_called_none() -> None:
    page = shown(replace(well(), alarms=part(None)))

    assert page.alarms is None
    assert page.panel.summary == "1 part could not be read."


@pytest.mark.parametrize(
    ("changed", "name", "icon"),
    [
        ({"waiting": Waiting(due=3, oldest_s=31, held=0)}, "Due work", "bad"),
        ({"waiting": Waiting(due=3, oldest_s=29, held=0)}, "Due work", "ok"),
        ({"broker": BrokerSeen(bells=2, unheard_s=0, policy="allkeys-lru")}, "Broker wait", "bad"),
        ({"broker": BrokerSeen(bells=2, unheard_s=61, policy="noeviction")}, "Broker wait", "bad"),
        ({"broker": BrokerSeen(bells=2, unheard_s=59, policy="noeviction")}, "Broker wait", "ok"),
        ({"outbox": OutboxSeen(waiting=1, oldest_s=61, parked=0)}, "Outbox wait", "bad"),
        ({"outbox": OutboxSeen(waiting=0, oldest_s=0, parked=1)}, "Outbox wait", "bad"),
        ({"workers": (worker(left=-2.0),)}, "Workers", "warn"),
        ({"workers": ()}, "Workers", "wait"),
        ({"unknown": Counted(count=2, since=builders.NOW)}, "Unknown steps", "unk"),
        (
            {"outstanding": Outstanding(all=2, dangling=1, since=builders.NOW, with_people=1)},
            "Outstanding compensations",
            "compfailed",
        ),
        (
            {"database": DatabaseSeen(version="18.1", connections=90, allowed=100, ahead_s=0)},
            "Database",
            "bad",
        ),
    ],
)
def test_a_number_over_its_limit_has_another_mark(changed: dict[str, Any], name: str, icon: str) -> None:
    parts: dict[str, Any] = {field: part(value) for field, value in changed.items()}
    seen = replace(well(), **parts)

    assert tile(seen, name).icon == icon


@pytest.mark.parametrize(
    ("ahead_s", "icon", "says"),
    [
        (1.9, "ok", ""),
        (3.2, "bad", "this server's clock is 3.2 s ahead of it, "),
        (-75.0, "bad", "this server's clock is 1 m behind it, "),
    ],
)
def test_a_clock_that_is_not_the_databases_is_told(ahead_s: float, icon: str, says: str) -> None:
    seen = DatabaseSeen(version="18.1", connections=9, allowed=100, ahead_s=ahead_s)

    found = tile(replace(well(), database=part(seen)), "Database")

    assert (found.icon, found.about) == (icon, f"{says}PostgreSQL 18.1, 9 of 100 connections")


def test_how_long_no_bell_was_heard_stands_with_the_broker() -> None:
    seen = BrokerSeen(bells=2, unheard_s=61, policy="noeviction")

    found = tile(replace(well(), broker=part(seen)), "Broker wait")

    assert (found.value, found.about) == ("1 m", "2 bells to be heard, limit 60 s")


def test_no_worker_is_bad_only_while_work_waits() -> None:
    quiet = (Alarm(code="worker.none", count=1, since=None),)
    stuck = (*quiet, Alarm(code="run.not_moving", count=4, since=builders.NOW))

    at_rest = shown(replace(well(), workers=part(()), alarms=part(quiet)))
    assert at_rest.panel.summary == "No alarm is in force."
    assert tile(replace(well(), workers=part(()), alarms=part(stuck)), "Workers").icon == "bad"


@pytest.mark.requirement("S4-26")
def test_every_alarm_says_what_to_do_in_the_words_of_the_operators_page() -> None:
    section = OPERATIONS.read_text("utf-8").partition("## Alarms")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.+?) \| (.+?) \|$", section.replace("\\|", "/"), re.MULTILINE)
    with translation.override("en"):
        ours = {code: (str(one.means), str(one.do)) for code, one in REMEDIES.items()}

    plain = {code: tuple(re.sub(r"[`*]", "", cell) for cell in cells) for code, *cells in rows}
    assert ours == plain
    assert set(ours) == {code for code, __ in alarms._CHECKS}


@pytest.mark.parametrize(
    ("calls", "failures", "icon"), [(4, 0, "ok"), (4, 1, "warn"), (4, 4, "bad"), (0, 0, "wait")]
)
def test_a_provider_is_marked_by_what_its_last_calls_came_to(calls: int, failures: int, icon: str) -> None:
    one = SystemLately(
        system="notify", calls=calls, failures=failures, mean_ms=12, last_success=None, last_failure=None
    )

    page = words.system(well(), part((one,)), part(()), (), clock=builders.clock())

    assert page.providers is not None
    assert [(row.icon, row.last_success) for row in page.providers] == [(icon, "none seen")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"per_second": 2.5}, "2.5 calls a second at most"),
        ({"at_once": 3}, "3 calls at once at most"),
        ({"closed_until": builders.NOW}, "closed until 11:42:00"),
        ({"paused_at": builders.NOW, "paused_why": "401"}, "paused since 11:42:00: 401"),
        (
            {"per_second": 1.0, "waiting": 4, "waiting_since": builders.NOW},
            "1 call a second at most, 4 calls wait",
        ),
    ],
)
def test_a_gate_says_what_it_holds_back(given: dict[str, Any], said: str) -> None:
    assert gates.gate_words(gate(**given), builders.clock()) == said
