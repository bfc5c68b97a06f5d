"""The Decide panel without a browser: five sections for every verb, what is read before it, what comes of it."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from sagas.facts import RunFacts
from sagas.ledger.quarantine import quarantine
from sagas.models import Run
from sagas.states import RunState
from tests.conftest import Clock, Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import CUT, MUTE, REFUSED, ref_of
from tests.integration.workbench.flows import REASON, Desk
from tests.integration.workbench.test_accepting_items import batch
from tests.integration.workbench.test_going_forward_again import behind_a_pivot
from tests.integration.workbench.test_plans import pause
from workbench.commands import COMMANDS
from workbench.labs.browser import read

__all__ = ["batch"]

STUCK = {"tool": "release_stock", "mode": "refuse"}
SECTIONS = (
    ("Exactly what will run", "Exactly what will change"),
    ("Checked just now",),
    ("What each answer leads to",),
    ("Cannot be taken back",),
    ("Reason",),
)


def of(username: str) -> Client:
    client = Client()
    client.force_login(flows.person(username))
    return client


def sections(html: str) -> list[str]:
    """The headings of the preview, and the field that asks why, in their order."""
    run = html.partition('id="run"')[2].partition("</form>")[0]
    found = re.findall(r"<h4>([^<]+)</h4>|<label class=\"fldl\" for=\"f-reason\">\s*([^<]+)", run)
    named = [(heading or label).strip() for heading, label in found]
    return [name for name in named if any(name in names for names in SECTIONS)]


def offered(client: Client, case: str) -> list[str]:
    """Every action that this person may pick on a case, as the page names it."""
    return read(client.get(f"/handoffs/{case}/").content.decode(), status=200, url="").acts


@pytest.fixture
def cases(batch: RunFacts, workplace: Simulator, clock_of_tests: Clock) -> dict[str, RunFacts]:
    """A case of each kind: what may be done on them together is every verb there is."""

    def ordered(*rules: dict[str, str], broken: str = "") -> RunFacts:
        workplace.plan(*rules)
        ref = flows.start()
        if broken:
            quarantine(Run.objects.get(ref=ref).pk, broken)
        return flows.drive_until_still(ref)

    def compensated(case: RunFacts) -> RunFacts:
        assert Desk("maya").run("compensate", ref_of(case), f"c-{case.ref}", reason=REASON).accepted
        return case

    turned = behind_a_pivot(workplace)  # before any other rule of the world, which stays
    halfway = compensated(ordered(REFUSED, STUCK))
    found = {
        "batch": batch,
        "refused": ordered(REFUSED),
        "unknown": ordered(CUT, MUTE),
        "stated": ordered(CUT, MUTE),
        "halfway": flows.drive_until_still(halfway.ref),
        "turned": turned,
        "broken": ordered(broken="The definition could not be read."),
    }
    paused = compensated(ordered(REFUSED))
    assert pause("maya", paused.ref).accepted
    clock_of_tests.put_forward(60)
    stated = Desk("maya").run(
        "resolve_not_happened", ref_of(found["stated"]), "s-1", step="send_notice", reason=REASON
    )
    assert stated.accepted, stated
    return {**found, "paused": paused}


@pytest.mark.requirement("S1-16")
def test_every_preview_has_its_five_sections_and_a_query_alone_asks_for_no_reason(
    cases: dict[str, RunFacts],
) -> None:
    seen = set()
    for facts in cases.values():
        for who in map(of, ("jonas", "priya")):
            for act in offered(who, ref_of(facts)):
                verb = act.partition(".")[0]
                if verb in seen:
                    continue
                seen.add(verb)
                named = sections(who.get(f"/handoffs/{ref_of(facts)}/", {"act": act}).content.decode())
                wanted = SECTIONS[:4] if verb == "query_status" else SECTIONS
                assert len(named) == len(wanted), (verb, named)
                assert all(name in names for name, names in zip(named, wanted, strict=True)), (verb, named)
    assert seen == {verb for verb, command in COMMANDS.items() if command.needs_preview}


@pytest.mark.requirement("S3-4", "S3-8")
def test_a_query_without_an_answer_says_when_the_system_looks_again_by_itself(
    unknown_notice: RunFacts,
) -> None:
    maya, case = of("maya"), f"/handoffs/{ref_of(unknown_notice)}/"
    run = read(maya.get(f"{case}?act=query_status.send_notice").content.decode(), status=200, url=case).forms[
        "run"
    ]
    assert maya.post(run.action, run.fields).status_code == 202

    notice = flows.drive_until_still(unknown_notice.ref).action("send_notice")
    news = maya.get(
        f"{case}changes/",
        {"v": run.fields["saw_version"], "waiting": "query_status.send_notice"},
        headers={"HX-Request": "true"},
    ).content.decode()

    assert notice.due_at is not None
    at = f"{notice.due_at.astimezone(ZoneInfo('Europe/Berlin')):%H:%M:%S}"
    assert f"Next automatic check {at}." in news


@pytest.mark.requirement("S3-20")
def test_a_compensation_that_failed_is_left_out_through_the_page(
    workplace: Simulator,
) -> None:
    workplace.plan(REFUSED, STUCK)
    facts = flows.drive_until_still(flows.start())
    assert Desk("maya").run("compensate", ref_of(facts), "c-0", reason=REASON).accepted
    facts = flows.drive_until_still(facts.ref)
    priya, case = of("priya"), f"/handoffs/{ref_of(facts)}/"
    shown = priya.get(case, {"act": "skip_compensation.reserve_stock"}).content.decode()
    form = read(shown, status=200, url=case).forms["run"]
    sent = len(workplace.ledger(kind="effect"))

    refused = priya.post(form.action, {**form.fields, "reason": "too short"})
    done = priya.post(form.action, {**form.fields, "reason": REASON})
    facts = flows.drive_until_still(facts.ref)
    after = priya.get(case).content.decode()

    assert (refused.status_code, done.status_code) == (422, 202), done.content.decode()
    assert len(workplace.ledger(kind="effect")) == sent
    assert (facts.state, facts.effects_left) == (RunState.CLOSED_ACCEPTED, ("reserve_stock",))
    assert REASON in after
