"""Teams from their files: reads them, says all that is wrong, and stores what is right as the next version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sagas import api
from sagas.facts import Actor
from tools.contract import Json
from tools.problems import FileProblems
from workbench.commands.publishing import files


@dataclass(kw_only=True)
class Teams:
    """What was read, and a line for everything that is wrong. With any line nothing is stored."""

    found: list[tuple[api.Team, Json]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def read(paths: Iterable[Path]) -> Teams:
    """Every team below `paths`. Raises OSError for a file that cannot be read."""
    teams, places = Teams(), dict[str, Path]()
    for path in files(paths):
        try:
            team, document = api.read_team(path)
        except FileProblems as error:
            teams.wrong += [str(problem) for problem in error.problems]
            continue
        if team.name in places:
            teams.wrong.append(f"{path}: the team {team.name} is declared in {places[team.name]} as well")
        places[team.name] = path
        teams.found.append((team, document))
    return teams


def publish(teams: Teams, *, actor: Actor) -> Iterator[str]:
    """Store each as its next version, saying a line for it; one that says nothing new is left as it is."""
    for team, document in teams.found:
        version = api.publish_team(team, document, actor=actor)
        yield f"{team.name}: version {version}" if version else f"{team.name}: unchanged"
