"""`make demo ARGS=--check`: settles the story as those people would, over HTTP, and lets the outside ledger judge.

Every verdict is a line that begins with "ok" or "NOT". Nothing here looks at the ledger's own tables to decide whether
an effect happened: that is asked of the simulated world.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.labs import cast, chapters
from workbench.labs.browser import Visitor
from workbench.labs.casework import NotSettled, facts_of, must
from workbench.labs.settlements import SETTLEMENTS
from workbench.labs.story import Progress
from workbench.labs.world import Outside


def run(web_url: str, admin_url: str, progress: Progress) -> list[str]:
    """Settle every chapter of the story; returns the verdicts."""
    outside = Outside(admin_url)
    people = {member.username: _log_in(web_url, member) for member in cast.CAST}
    progress("Settling the story as Maya, Jonas and Lin would")
    verdicts = [_judge(name, lambda s=settle: s(people, outside)) for name, settle in SETTLEMENTS.items()]  # type: ignore[misc]
    verdicts += [_judge("every confirmed effect is there once", lambda: _once(outside))]
    return verdicts


def _log_in(web_url: str, member: cast.Member) -> Visitor:
    visitor = Visitor(web_url)
    visitor.log_in(member.username, member.password)
    return visitor


def _judge(name: str, settle: Callable[[], str]) -> str:
    began = time.monotonic()
    try:
        found = settle()
    except (NotSettled, AssertionError) as error:
        return f"NOT {name}: {error}"
    return f"ok  {name}: {found} ({time.monotonic() - began:.1f} s)"


def _once(outside: Outside) -> str:
    """What the pages call confirmed is there once outside; what they call anything else is not taken for done."""
    looked = 0
    for chapter in chapters.CHAPTERS:
        units = [unit for action in facts_of(chapter).actions for unit in (action.items or (action,))]
        for unit in units:
            if not unit.contract.has_effect:
                continue
            looked += 1
            times, where = outside.times(unit.key), f"{chapter.business} {unit.step} {unit.item}".strip()
            if unit.state.value == "confirmed":
                must(times == 1, f"{where} is confirmed and happened {times} times")
            elif unit.state.value in ("rejected", "skipped", "not_started"):
                must(times == 0, f"{where} is {unit.state} and happened {times} times")
    return f"{looked} calls compared with the ledger outside, one by one"
