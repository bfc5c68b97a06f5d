"""Pictures of what stands only while people act: they act on a running demo, through its pages, and leave it working.

A page or a plan that has gone stale, a plan under way, a bulk, a freeze that one person ordered and two lift. Run on a
demo of one's own: a case is compensated by it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

REASON = "Pictures are taken of this state of the demo."

type Taken = Callable[[Page, str], list[Path]]
"""Takes the page as it stands in every look, under a name."""


def conflict(maya: Page, jonas: Page, case: str, take: Taken) -> list[Path]:
    """One person decides on a page that another has made stale; nothing is sent."""
    maya.route("**/changes/**", lambda route: route.fulfill(status=204))  # it hears of nothing
    maya.goto(f"{case}?act=escalate")
    maya.locator("#f-reason").fill(REASON)
    jonas.goto(case)
    for verb in ("claim", "release"):
        jonas.locator(f"[data-verb={verb}]").click()
        jonas.locator(f"[data-verb={verb}]").wait_for(state="detached")
    maya.locator("#go button").first.click()
    maya.locator("#result [data-key=use]").wait_for()
    files = take(maya, "02-case-conflict")
    maya.unroute_all()
    return files


def void(maya: Page, jonas: Page, plan: str, take: Taken) -> list[Path]:
    """A plan whose case has changed since: nobody can order it any more."""
    jonas.goto(f"{plan.partition('/plan/')[0]}/")
    for verb in ("claim", "release"):
        jonas.locator(f"[data-verb={verb}]").click()
        jonas.locator(f"[data-verb={verb}]").wait_for(state="detached")
    maya.goto(plan)
    return take(maya, "03-plan-void")


def many(lead: Page, home: str, take: Taken) -> list[Path]:
    """A list of cases is asked about at once, and told once every member has its result."""
    lead.goto(f"{home}/handoffs/")
    for box in lead.locator("tbody input[name=case]").all()[:4]:
        box.check()
    lead.locator("#bulk-query").click()
    lead.wait_for_url("**/handoffs/bulk/*/")
    reason = lead.locator("#run [name=reason]")
    if reason.count():
        reason.fill(REASON)
    lead.locator("#go button").click()
    lead.locator("[data-ended]").wait_for(state="attached", timeout=60_000)
    return take(lead, "01-queue-bulk-ended")


def running(maya: Page, plan: str, take: Taken) -> list[Path]:
    """A plan is run, and taken as soon as the page says how far it is."""
    maya.goto(plan)
    maya.locator("#f-reason").fill(REASON)
    maya.locator("#go button").click()
    maya.locator("#progress-says").wait_for()
    return take(maya, "03-plan-running")


def frozen(maya: Page, lead: Page, admin: Page, home: str, take: Taken) -> list[Path]:
    """One stops, one asks to lift, the other lifts."""
    maya.goto(f"{home}/freeze/")
    maya.locator("form[action$='/now/'] [name=reason]").fill(REASON)
    maya.locator("button.dng").click()
    maya.locator("#freeze-slot .freeze").wait_for()
    maya.goto(f"{home}/handoffs/")
    files = take(maya, "01-queue-frozen")
    lead.goto(f"{home}/freeze/")
    files += take(lead, "08-lift")
    for person in (lead, admin):
        person.goto(f"{home}/freeze/")
        form = person.locator("form[action$='/lift/']").first
        form.locator("[name=reason]").fill(REASON)
        form.locator("button").click()
        person.wait_for_load_state()
        if person is lead:
            files += take(lead, "08-lift-asked")
    return files
