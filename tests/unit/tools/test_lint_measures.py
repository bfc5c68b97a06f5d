"""The three numbers that a workflow is held to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import builders
from tools.contract import Escalation
from tools.definition import Definition, OnFailure
from tools.lint.measures import NOTHING, Measures, measure

TOOLS = ("reserve_stock", "create_shipment", "send_notice")


def definition() -> Definition:
    return builders.definition()


@pytest.mark.requirement("S2-13")
def test_an_order_is_compensable_but_for_its_notice_which_comes_last() -> None:
    contracts = {tool: builders.contract(tool) for tool in TOOLS}

    assert measure(definition(), contracts) == Measures(
        steps=3, recoverable=2, irreversible=1, late=1, effects=3, covered=3
    )


def test_an_irreversible_step_at_the_front_is_not_late() -> None:
    contracts = {tool: builders.contract(tool) for tool in TOOLS}
    turned = replace(definition(), steps=tuple(reversed(definition().steps)))

    assert measure(turned, contracts).late == 0


def test_an_effect_that_nobody_sees_to_is_not_covered() -> None:
    contracts = {tool: builders.contract(tool) for tool in TOOLS}
    contracts["send_notice"] = replace(contracts["send_notice"], escalation=Escalation())
    steps = tuple(replace(step, on_rejected=None) for step in definition().steps)
    alone = replace(definition(), steps=steps, on_failure=OnFailure.COMPENSATE)

    assert measure(alone, contracts).covered == 2
    assert measure(replace(alone, on_failure=OnFailure.HANDOFF), contracts).covered == 3


def test_a_tool_that_is_not_published_counts_as_a_step_and_as_nothing_else() -> None:
    assert measure(definition(), {}) == replace(NOTHING, steps=3)
