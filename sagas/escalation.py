"""When a handoff is due, when somebody is reminded of it, and who is told next when nobody settles it in time.

Pure: a team and an instant in, a schedule out. Nothing here decides anything about a run: time that has passed only
makes a case louder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sagas.worktime import Worktime
from tools.contract import Json

HIGHEST_LEVEL = 3
"""No chain is longer than this, and no person raises a case higher."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """One step of a chain: to whom, and how many working minutes after the step before it has passed."""

    to: str
    minutes: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Team:
    """Who settles handoffs: their working time and whom they call when time has run out.

    `remind_at` is the share of the limit after which the team is reminded, 0 for never. `version` and `digest` say
    which calendar it is; 0 and "" = none was declared, so that every minute counts.
    """

    name: str
    title: str
    worktime: Worktime
    chain: tuple[Level, ...]
    remind_at: float = 0.5
    version: int = 0
    digest: str = ""


UNDECLARED = (Level(to="lead"), Level(to="duty_manager", minutes=60.0))
"""The chain of a team that declares none: the lead when a case is late, the duty manager an hour after."""


def undeclared(name: str) -> Team:
    """A team that nobody has declared: it works around the clock."""
    always = Worktime(zone=ZoneInfo("UTC"), always=True)
    return Team(name=name, title=name, worktime=always, chain=UNDECLARED)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The instants of one handoff, fixed at its opening, and how they were computed.

    A calendar or a zone that changes later moves none of them. `levels` are (to whom, when), the first when it is due.
    """

    due_at: datetime
    minutes: float
    team: str
    zone: str
    calendar: int
    digest: str
    remind_at: datetime | None
    levels: tuple[tuple[str, datetime], ...]

    def document(self) -> dict[str, Json]:
        """The schedule as it is stored beside the handoff."""
        return {
            "due_at": self.due_at.isoformat(),
            "minutes": self.minutes,
            "team": self.team,
            "zone": self.zone,
            "calendar": self.calendar,
            "digest": self.digest,
            "remind_at": self.remind_at.isoformat() if self.remind_at else None,
            "levels": [{"to": to, "at": at.isoformat()} for to, at in self.levels],
        }


def schedule(team: Team, minutes: float, opened_at: datetime) -> Schedule:
    """The schedule of a handoff that opens now with a limit of so many working minutes."""
    worktime = team.worktime
    due_at = worktime.after(opened_at, minutes)
    levels, at = [], due_at
    for level in team.chain:
        at = worktime.after(at, level.minutes)
        levels.append((level.to, at))
    remind_at = worktime.after(opened_at, minutes * team.remind_at) if team.remind_at else None
    return Schedule(
        due_at=due_at,
        minutes=minutes,
        team=team.name,
        zone="" if worktime.always else worktime.zone.key,
        calendar=team.version,
        digest=team.digest,
        remind_at=remind_at,
        levels=tuple(levels),
    )


def scheduled(document: Mapping[str, Json]) -> Schedule | None:
    """A schedule as it was stored; None for a handoff of a time when none was."""
    if not document:
        return None
    remind_at = document["remind_at"]
    return Schedule(
        due_at=_instant(document["due_at"]),
        minutes=float(document["minutes"]),
        team=document["team"],
        zone=document["zone"],
        calendar=int(document["calendar"]),
        digest=document["digest"],
        remind_at=_instant(remind_at) if remind_at else None,
        levels=tuple((level["to"], _instant(level["at"])) for level in document["levels"]),
    )


def next_alert(plan: Schedule | None, *, level: int, reminded: bool) -> datetime | None:
    """When a handoff at this level has to be looked at next: a reminder that is not out, or the next level's time.

    A level that a person has reached before is not told again.
    """
    if plan is None:
        return None
    waiting = [plan.remind_at] if plan.remind_at and not reminded and level == 0 else []
    waiting += [at for _, at in plan.levels[level : level + 1]]
    return min(waiting, default=None)


def level_name(plan: Schedule | None, level: int) -> str:
    """Whom a level of escalation is for; "" where the chain does not say."""
    if plan is None or not 0 < level <= len(plan.levels):
        return ""
    return plan.levels[level - 1][0]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
