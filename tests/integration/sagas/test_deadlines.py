"""Due times, reminders and escalation: working time of the team, the database's clock, each exactly once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.db import connections
from django.utils import timezone

from sagas import api, sweep
from sagas.facts import EntryFacts, RunFacts
from sagas.models import Handoff
from sagas.states import HandoffState, RunState
from sagas.teamfile import team_from_document
from tests.integration.sagas.conftest import OPERATOR, ROOT, drain
from tests.integration.sagas.stage import INPUTS, Stage, clear_stage, stage
from tools.reader import definition_from_document, read_definition

__all__ = ["clear_stage", "stage"]

pytestmark = pytest.mark.requirement("S0-82", "S1-15")

LONDON = ZoneInfo("Europe/London")
DESK: dict[str, Any] = {
    "name": "desk",
    "time_zone": "Europe/London",
    "hours": {day: ["09:00-17:00"] for day in ("mon", "tue", "wed", "thu", "fri")},
    "remind_at": 0.5,
    "chain": [{"to": "lead"}, {"to": "duty_manager", "minutes": 60}],
}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@dataclass
class Scene:
    """A stage on which time is set by hand, with a workflow that hands over what is rejected."""

    stage: Stage
    set_by_s: float = 0.0

    def at(self, moment: datetime) -> None:
        """Set the database's clock."""
        seconds = (moment - api.now()).total_seconds()
        self.set_by_s += seconds
        self.stage.clock.put_forward(seconds)

    def hand_over(self, number: int) -> str:
        """A run whose first step is rejected now; returns its handoff."""
        given = INPUTS["order_fulfilment"](number)
        started = api.start_run(actor=OPERATOR, definition="by_hand", input=given, start_key=f"d-{number}")
        drain()
        facts = api.run_facts(started.run_ref)
        assert facts.state is RunState.HANDOFF
        assert facts.handoff is not None
        return facts.handoff.ref

    def facts(self, ref: str) -> RunFacts:
        return api.handoff_facts(ref)


@pytest.fixture
def scene(clear_stage: Stage) -> Iterator[Scene]:
    document = dict(read_definition(ROOT / "examples" / "order_fulfilment.toml").document)
    document |= {"name": "by_hand", "on_failure": "handoff", "team": "desk", "deadlines": {"default": 480}}
    api.publish_definition(definition_from_document(document), actor=OPERATOR)
    api.publish_team(team_from_document(DESK), DESK, actor=OPERATOR)
    clear_stage.simulator.plan({"tool": "reserve_stock", "mode": "refuse"})
    scene = Scene(clear_stage)
    yield scene
    clear_stage.clock.put_forward(-scene.set_by_s)


def told(scene: Scene, ref: str) -> list[tuple[str, str, datetime]]:
    """Every reminder and escalation of a case: what, to whom, and the instant it was due at."""
    return [
        (entry.name.rpartition(".")[2], entry.after.get("to", ""), datetime.fromisoformat(entry.after["at"]))
        for entry in alerts(scene, ref)
    ]


def alerts(scene: Scene, ref: str) -> list[EntryFacts]:
    names = ("human.handoff.reminded", "human.handoff.escalated")
    return [entry for entry in api.entries(scene.facts(ref).ref) if entry.name in names]


@pytest.mark.parametrize(
    ("opened", "reminded", "escalated"),
    [
        # The clocks go forward on Sunday 29 March 2026, back on Sunday 25 October 2026.
        (datetime(2026, 3, 27, 16, 30, tzinfo=LONDON), "2026-03-30T11:30", "2026-03-30T15:30"),
        (datetime(2026, 10, 23, 16, 30, tzinfo=LONDON), "2026-10-26T12:30", "2026-10-26T16:30"),
        (datetime(2026, 3, 28, 12, 0, tzinfo=LONDON), "2026-03-30T12:00", "2026-03-30T16:00"),
    ],
    ids=["over-spring", "over-autumn", "saturday"],
)
def test_reminder_and_escalation_come_in_working_hours_across_a_change_of_clocks(
    scene: Scene, opened: datetime, reminded: str, escalated: str
) -> None:
    scene.at(opened)
    ref = scene.hand_over(9_000_001)
    handoff = Handoff.objects.get(ref=ref)
    # It opened a moment after the clock was set; within working hours everything is later by that moment.
    slack = handoff.opened_at - opened if opened.weekday() < 5 else timedelta(0)

    for text, said in ((reminded, 1), (escalated, 2)):
        scene.at(utc(text) + slack - timedelta(seconds=5))
        assert sweep.speak_up() == 0
        scene.at(utc(text) + slack + timedelta(seconds=1))
        assert sweep.speak_up() == 1
        assert len(told(scene, ref)) == said
    assert told(scene, ref) == [
        ("reminded", "", utc(reminded) + slack),
        ("escalated", "lead", utc(escalated) + slack),
    ]
    assert scene.facts(ref).state is RunState.HANDOFF
    assert handoff.schedule["zone"] == "Europe/London"
    assert handoff.schedule["calendar"] == 1


def test_each_level_is_reached_once_and_nothing_is_decided(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    ref = scene.hand_over(9_000_011)
    before = scene.facts(ref)
    with api.transaction(), api.desk(ref, actor=OPERATOR) as desk:
        desk.claim(minutes=100_000)
    version = scene.facts(ref).version

    scene.at(datetime(2026, 6, 8, 9, 0, tzinfo=LONDON))
    assert sweep.speak_up() == 3
    assert sweep.speak_up() == 0

    facts = scene.facts(ref)
    assert [what for what, _, _ in told(scene, ref)] == ["reminded", "escalated", "escalated"]
    assert [to for _, to, _ in told(scene, ref)] == ["", "lead", "duty_manager"]
    assert facts.handoff is not None
    assert (facts.handoff.escalation, facts.handoff.state) == (2, HandoffState.CLAIMED)
    # What somebody reads and decides on stays good; only the case has become louder.
    assert facts.version == version
    assert facts.state == before.state
    assert {entry.actor_id for entry in alerts(scene, ref)} == {"engine"}
    assert "handoff.late" in {alarm.code for alarm in api.alarms()}


def test_two_sweeps_at_once_escalate_once(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    refs = [scene.hand_over(9_000_021 + number) for number in range(3)]
    scene.at(datetime(2026, 6, 8, 9, 0, tzinfo=LONDON))
    barrier, said = threading.Barrier(3), []

    def look() -> None:
        try:
            barrier.wait(60)
            said.append(sweep.speak_up())
        finally:
            connections.close_all()

    sweeps = [threading.Thread(target=look) for _ in range(3)]
    for thread in sweeps:
        thread.start()
    for thread in sweeps:
        thread.join(60)

    assert sum(said) == 9
    assert [len(told(scene, ref)) for ref in refs] == [3, 3, 3]


def test_a_level_that_a_person_has_reached_is_not_told_again(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    ref = scene.hand_over(9_000_031)
    with api.transaction(), api.desk(ref, actor=OPERATOR, reason="too big for me") as desk:
        desk.escalate()

    scene.at(datetime(2026, 6, 1, 17, 30, tzinfo=LONDON))
    assert sweep.speak_up() == 0
    scene.at(datetime(2026, 6, 2, 10, 30, tzinfo=LONDON))
    assert sweep.speak_up() == 1

    by = [(entry.actor_id, entry.after["level"], entry.after["to"]) for entry in alerts(scene, ref)]
    assert by == [(OPERATOR.id, 1, "lead"), ("engine", 2, "duty_manager")]


def test_a_reminder_at_the_very_end_comes_once_and_before_the_escalation(scene: Scene) -> None:
    late = {**DESK, "remind_at": 1}
    api.publish_team(team_from_document(late), late, actor=OPERATOR)
    scene.at(datetime(2026, 6, 1, 8, 50, tzinfo=LONDON))
    ref = scene.hand_over(9_000_081)

    scene.at(datetime(2026, 6, 1, 17, 30, tzinfo=LONDON))

    assert sweep.speak_up() == 2
    assert [what for what, _, _ in told(scene, ref)] == ["reminded", "escalated"]


def test_a_case_that_is_settled_is_told_to_nobody(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    ref = scene.hand_over(9_000_041)
    with api.transaction(), api.desk(ref, actor=OPERATOR) as desk:
        desk.stop_and_compensate()
    assert Handoff.objects.get(ref=ref).state == HandoffState.RESOLVED

    scene.at(datetime(2026, 6, 8, 9, 0, tzinfo=LONDON))

    assert sweep.speak_up() == 0
    assert told(scene, ref) == []


def test_a_calendar_or_a_zone_that_changes_moves_no_open_case(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    ref = scene.hand_over(9_000_051)
    due = Handoff.objects.get(ref=ref).due_at
    changed = {**DESK, "time_zone": "Asia/Tokyo"}

    assert api.publish_team(team_from_document(DESK), DESK, actor=OPERATOR) == 0
    assert api.publish_team(team_from_document(changed), changed, actor=OPERATOR) == 2
    with timezone.override("Pacific/Apia"):
        assert Handoff.objects.get(ref=ref).due_at == due
        later = Handoff.objects.get(ref=scene.hand_over(9_000_052))
    assert later.due_at != due
    assert (later.schedule["zone"], later.schedule["calendar"]) == ("Asia/Tokyo", 2)


def test_a_queue_that_nobody_attends_is_shown_and_alarmed(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 8, 50, tzinfo=LONDON))
    refs = [scene.hand_over(9_000_061 + number) for number in range(2)]
    (queue,) = api.team_queues()
    assert (queue.team, queue.cases, queue.unclaimed, queue.late, queue.at_work) == ("desk", 2, 2, 0, False)
    assert not queue.unattended

    scene.at(datetime(2026, 6, 1, 18, 0, tzinfo=LONDON))
    sweep.speak_up()

    (queue,) = api.team_queues()
    assert queue.unattended
    assert (queue.late, queue.escalated, queue.at_work) == (2, 2, False)
    assert queue.opens_at == datetime(2026, 6, 2, 9, 0, tzinfo=LONDON)
    assert {"queue.unattended", "handoff.escalated"} <= {alarm.code for alarm in api.alarms()}

    with api.transaction(), api.desk(refs[0], actor=OPERATOR) as desk:
        desk.claim()
    assert not api.team_queues()[0].unattended
    assert "queue.unattended" not in {alarm.code for alarm in api.alarms()}
    # A claim that is not renewed lapses, and the case is nobody's again.
    scene.at(datetime(2026, 6, 1, 18, 30, tzinfo=LONDON))
    assert sweep.release_lapsed_claims() == 1
    assert api.team_queues()[0].unattended


def test_the_queue_hears_of_an_escalation(scene: Scene) -> None:
    scene.at(datetime(2026, 6, 1, 8, 50, tzinfo=LONDON))
    ref = scene.hand_over(9_000_071)
    page = api.queue()

    scene.at(datetime(2026, 6, 1, 17, 30, tzinfo=LONDON))
    sweep.speak_up()

    assert api.queue_changes(page.cursor).refs == (ref,)


@pytest.mark.requirement("S4-29")
def test_a_case_that_somebody_holds_keeps_no_other_waiting_and_no_look_of_the_sweep(
    scene: Scene, fresh_database: str
) -> None:
    """As a process does that was stopped in the middle of a transaction."""
    scene.at(datetime(2026, 6, 1, 9, 0, tzinfo=LONDON))
    held, other = scene.hand_over(9_000_081), scene.hand_over(9_000_082)
    for ref in (held, other):
        with api.transaction(), api.desk(ref, actor=OPERATOR) as desk:
            desk.claim()
    scene.at(datetime(2026, 6, 1, 16, 0, tzinfo=LONDON))
    claims = Handoff.objects.filter(state=HandoffState.CLAIMED).values_list("ref", flat=True)

    with psycopg.connect(fresh_database) as stopped:
        stopped.execute(
            "SELECT 1 FROM sagas_run WHERE id = (SELECT run_id FROM sagas_handoff WHERE ref = %s) FOR UPDATE",
            [held],
        )
        sweep.Sweep().tick()
        assert list(claims.all()) == [held]
        assert [len(told(scene, ref)) for ref in (held, other)] == [0, 1]
        stopped.rollback()

    sweep.Sweep().tick()
    assert list(claims.all()) == []
    assert len(told(scene, held)) == 1
