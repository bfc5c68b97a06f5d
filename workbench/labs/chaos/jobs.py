"""What is started and how the world misbehaves at it: a pure function of the seed and the job's number."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MODES = (
    "refuse",
    "fail_before",
    "fail_after",
    "no_answer",
    "applied_no_answer",
    "garbage",
    "wrong_schema",
    "throttle",
    "slow",
    "cut",
    "reset",
    "not_found",
)
"""How a forward call may go wrong."""

COMPENSATION_MODES = ("fail_before", "fail_after", "applied_no_answer", "throttle", "reset")
LATER = ("callback_early", "callback_duplicate", "callback_stale", "callback_never", "job_fails")
ITEMS = 6
CONFIRMED = "bank_opening_confirmed"
"""The workflow with a call that a person confirms each time (`confirmed`)."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be started: of a definition, or of `steps`. `rules` of the world lack the run that they are for."""

    number: int
    business: str
    body: dict[str, Any]
    rules: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Flow:
    share: float
    tools: tuple[str, ...]
    back: tuple[str, ...]
    modes: tuple[str, ...] = MODES
    body: Callable[[str], dict[str, Any]] = field(default=lambda n: {})
    business: str = "A"


def _bank(definition: str) -> Callable[[str], dict[str, Any]]:
    return lambda n: {
        "definition": definition,
        "input": {
            "application": f"A-{n}",
            "name": "R. Sample",
            "id_no": f"S{n}",
            "limit": "500.00",
            "phone": "+49 40 555 0100",
            "fee": "20.00",
        },
    }


def _order(n: str) -> dict[str, Any]:
    given = {
        "order": f"O-{n}",
        "customer": f"C-{n}",
        "sku": "SKU-118",
        "qty": 2,
        "address": "Harbour Street 4",
    }
    return {"definition": "order_fulfilment", "input": given}


def _trip(n: str) -> dict[str, Any]:
    given = {"trip": f"TR-{n}", "car": f"CAR-{n}", "hotel": f"HOT-{n}", "flight": f"FL-{n}"}
    return {"definition": "trip_package", "input": given}


def _batch(n: str) -> dict[str, Any]:
    items = [{"id": f"ART-{n}{item:02d}"} for item in range(1, ITEMS + 1)]
    return {"definition": "batch_relabel", "input": {"batch": f"B-{n}", "label": "sale", "items": items}}


def _line(n: str) -> dict[str, Any]:
    given = {
        "customer": f"C-{n}",
        "product": "dsl",
        "customer_mail": "r@sample.example",
        "text": "Your line works.",
    }
    return {"definition": "line_activation", "input": {**given, "delay_ms": 300}}


def _ad_hoc(n: str) -> dict[str, Any]:
    steps = [
        {"id": "take_quota", "tool": "deduct_quota", "args": {"customer": f"C-{n}", "units": 1}},
        {"id": "set_up_line", "tool": "provision_line", "args": {"customer": f"C-{n}", "product": "dsl"}},
    ]
    return {"title": "Quota and a line", "steps": steps, "business_ref": f"C-{n}"}


_BANK = ("create_customer", "create_file", "allocate_limit", "send_sms", "debit_fee")
_BANK_BACK = ("release_customer_no", "withdraw_file", "reclaim_limit", "reverse_fee")
FLOWS: tuple[_Flow, ...] = (
    _Flow(share=0.34, tools=_BANK, back=_BANK_BACK, body=_bank("bank_opening")),
    _Flow(share=0.06, tools=_BANK, back=_BANK_BACK, body=_bank(CONFIRMED)),
    _Flow(share=0.08, tools=_BANK, back=_BANK_BACK, body=_bank("bank_opening_signed")),
    _Flow(
        share=0.15,
        tools=("reserve_stock", "create_shipment", "send_notice"),
        back=("release_stock", "cancel_shipment"),
        body=_order,
        business="O",
    ),
    _Flow(
        share=0.15,
        tools=("book_car", "book_hotel", "book_flight"),
        back=("cancel_car", "cancel_hotel", "cancel_flight"),
        body=_trip,
        business="TR",
    ),
    _Flow(
        share=0.08,
        tools=("relabel_items",),
        back=("restore_label",),
        modes=("partial", "applied_no_answer", "throttle", "fail_after", "reset"),
        body=_batch,
        business="B",
    ),
    _Flow(
        share=0.08,
        tools=("provision_line", "write_record", "send_mail"),
        back=("release_line", "withdraw_record"),
        body=_line,
        business="C",
    ),
    _Flow(
        share=0.06,
        tools=("deduct_quota", "provision_line"),
        back=("give_back_quota", "release_line"),
        body=_ad_hoc,
        business="C",
    ),
)


def job(seed: int, number: int) -> Job:
    """The job with this number, and what the world does to it."""
    chance = random.Random(f"job {seed} {number}")  # noqa: S311  replayable, not secret
    flow = chance.choices(FLOWS, [one.share for one in FLOWS])[0]
    n = f"{seed % 900 + 100}{number:06d}"
    rules = []
    if chance.random() < 0.75:
        rules.append(_rule(chance, flow, n))
    if chance.random() < 0.2:
        tool, mode = chance.choice(flow.back), chance.choice(COMPENSATION_MODES)
        rules.append({"tool": tool, "mode": mode, "attempts": [1]})
    return Job(number=number, business=f"{flow.business}-{n}", body=flow.body(n), rules=tuple(rules))


def _rule(chance: random.Random, flow: _Flow, n: str) -> dict[str, Any]:
    tool = chance.choice(flow.tools)
    mode = chance.choice(LATER if tool == "provision_line" and chance.random() < 0.6 else flow.modes)
    if mode == "partial":
        failing = [f"ART-{n}{item:02d}" for item in range(1, ITEMS) if chance.random() < 0.4]
        return {"tool": tool, "mode": mode, "items": failing, "attempts": [1]}
    attempts = chance.choice(([1], [1], [1, 2], None))
    rule: dict[str, Any] = {"tool": tool, "mode": mode}
    return rule if attempts is None else {**rule, "attempts": attempts}
