"""The cast, the shipped contracts and cases of each kind, on the real engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from sagas import api
from sagas.facts import RunFacts
from tests.conftest import PutBack, Simulator
from tests.integration.workbench import flows
from workbench.commands import tokens
from workbench.labs import cast
from workbench.roles import Scope, TokenKind

CUT = {"tool": "send_notice", "mode": "cut"}
MUTE = {"tool": "query_notice", "mode": "query_down"}
REFUSED = {"tool": "send_notice", "mode": "refuse"}


@pytest.fixture
def workplace(db_clean: None, simulator: Simulator, premises: PutBack) -> Simulator:
    """People, contracts and workflows are there; nothing has been started."""
    premises()
    return simulator


@pytest.fixture
def unknown_notice(workplace: Simulator) -> RunFacts:
    """Stock and shipment stand, the notice got no answer, and the status query does not answer either."""
    workplace.plan(CUT, MUTE)
    return _in_handoff(flows.start)


@pytest.fixture
def rejected_notice(workplace: Simulator) -> RunFacts:
    """Stock and shipment stand, the notice was refused for good."""
    workplace.plan(REFUSED)
    return _in_handoff(flows.start)


@pytest.fixture
def closed_case(rejected_notice: RunFacts) -> RunFacts:
    """A case that was accepted and closed."""
    ref = ref_of(rejected_notice)
    done = flows.Desk("maya").run(
        "mark_acceptable", ref, "close-it", end_state="notice_to_be_confirmed", reason=flows.REASON
    )
    assert done.accepted, done
    return api.handoff_facts(ref)


def ref_of(facts: RunFacts) -> str:
    assert facts.handoff is not None
    return facts.handoff.ref


def _in_handoff(start: Callable[[], str]) -> RunFacts:
    facts = flows.drive_until_still(start())
    assert facts.handoff is not None, facts.state
    return facts


@pytest.fixture
def agent_secret(workplace: Simulator) -> str:
    """A token of an agent that Maya answers for, named as the one that starts the flows."""
    issued = tokens.issue(
        actor=cast.SYSTEM,
        owner=flows.person("maya"),
        kind=TokenKind.AGENT,
        name="orders",
        scopes=list(Scope),
    )
    return issued.secret


@pytest.fixture
def agent_client(agent_secret: str) -> Client:
    """A client that calls with the agent's token."""
    return Client(headers={"Authorization": f"Bearer {agent_secret}"})
