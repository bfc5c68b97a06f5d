"""The run page: what was let pass at publishing, what it is a remedy for, what an agent said and what a person did."""

from __future__ import annotations

from sagas.facts import RunFacts, WaiverFacts
from tests import builders
from workbench.web.presenters import runs


def shown(facts: RunFacts, *waivers: WaiverFacts) -> runs.Run:
    return runs.run(
        facts,
        (),
        next_allowed=(),
        word="handoff",
        reader="maya",
        clock=builders.clock(),
        full=False,
        waivers=waivers,
    )


def test_what_was_let_pass_at_publishing_names_who_and_why() -> None:
    waiver = WaiverFacts(
        code="AM104",
        title="an irreversible step before a write",
        steps=("send_sms", "debit_fee"),
        reason="The bank wants the message first.",
        by="ada",
        by_name="Ada",
        at=builders.NOW,
    )

    (one,) = shown(builders.run(), waiver).waivers

    assert (one.code, one.steps, one.by) == ("AM104", "send_sms, debit_fee", "Ada")
    assert one.reason == "The bank wants the message first."
    assert one.at


def test_the_reason_of_whoever_opened_a_remedy_is_not_an_agents_intent() -> None:
    remedy = shown(builders.run(parent_ref="run_0", intent="A person's reason"))
    plain = shown(builders.run(intent="Send the order"))

    assert remedy.intent == ""
    assert remedy.parent is not None
    assert plain.intent == "Send the order"
