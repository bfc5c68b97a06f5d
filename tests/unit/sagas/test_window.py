"""How far ahead a large run is read."""

from sagas import planner
from sagas.ledger import window


def test_as_much_is_read_ahead_as_may_go_out_together() -> None:
    assert window.AHEAD >= planner.MOST_TOGETHER


def test_the_steps_that_a_template_reads() -> None:
    template = {
        "a": {"from": "steps.one.result", "pointer": "/x"},
        "b": [{"from": "input"}, {"literal": {"from": "steps.never.result"}}],
        "c": {"from": "steps.two.prior", "default": 1},
    }

    assert window.steps_named([template, None]) == {"one", "two"}
