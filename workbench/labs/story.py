"""The demo story: what went wrong this morning, made to happen on the real engine against the simulated world.

Each chapter is one incident: what the world does, the run that meets it, and how it comes to a person. `check` settles
every one of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sagas import api
from sagas.facts import Actor, ActorKind, RunFacts
from tools.reader import read_contract, read_definition
from workbench.labs.world import Outside

ROOT = Path(__file__).resolve().parents[2]
AGENT = Actor(kind=ActorKind.AGENT, id="agent:front-office", name="Front office agent", role="agent")
PUBLISHER = Actor(kind=ActorKind.SYSTEM, id="demo", name="Demo", role="owner")
PATIENCE_S = 90.0

type Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One incident. `reason` is the code under which it reaches a person, "" if it settles by itself."""

    name: str
    business: str
    definition: str
    given: Mapping[str, Any]
    intent: str
    rules: tuple[dict[str, Any], ...]
    reason: str
    ends: tuple[str, ...] = field(default=())


def _order(name: str, number: int, intent: str, reason: str, *rules: dict[str, Any], **more: Any) -> Chapter:
    business = f"O-{number}"
    given = {
        "order": business,
        "customer": f"C-{88000 + number % 1000}",
        "amount": more.pop("amount", "86.40"),
        "sku": "SKU-118",
        "qty": 2,
        "address": "Harbour Street 4, 20457 Hamburg",
        "text": "Your parcel is on its way.",
    }
    return Chapter(
        name=name,
        business=business,
        definition="order_fulfilment",
        given=given,
        intent=intent,
        rules=rules,
        reason=reason,
        **more,
    )


def _ticket(name: str, number: int, intent: str, reason: str, *rules: dict[str, Any]) -> Chapter:
    given = {
        "customer_id": f"C-{number}",
        "subject": "Change of address",
        "fields": {"city": "Kiel", "street": "Lock Lane 2"},
        "customer_mail": "customer@example.org",
        "text": "We have changed your address.",
    }
    return Chapter(
        name=name,
        business=f"C-{number}",
        definition="ticket_crm_notice",
        given=given,
        intent=intent,
        rules=rules,
        reason=reason,
    )


def _bank(
    name: str,
    number: int,
    intent: str,
    reason: str,
    *rules: dict[str, Any],
    ends: tuple[str, ...] = (),
) -> Chapter:
    given = {
        "application": f"A-{number}",
        "name": "R. Sample",
        "id_no": f"ID{number:06d}",
        "limit": "500.00",
        "phone": "+49 40 555 0100",
        "fee": "20.00",
    }
    return Chapter(
        name=name,
        business=f"A-{number}",
        definition="bank_opening",
        given=given,
        intent=intent,
        rules=rules,
        reason=reason,
        ends=ends,
    )


def _rule(tool: str, mode: str, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "mode": mode, **more}


NOTICE_UNKNOWN = _order(
    "the notice got no answer and the query does not answer either",
    20931,
    "Fulfil the order and tell the customer.",
    "unknown_unresolved",
    _rule("send_notice", "applied_no_answer"),
    _rule("query_notice", "query_down"),
)
NOTICE_LOST = _order(
    "the notice never went out, and nobody could tell",
    20935,
    "Fulfil the order and tell the customer.",
    "unknown_unresolved",
    _rule("send_notice", "no_answer"),
    _rule("query_notice", "query_down"),
    amount="23.90",
)
NOTICE_REFUSED = _order(
    "the notice was refused",
    20940,
    "Fulfil the order and tell the customer.",
    "rejected",
    _rule("send_notice", "refuse"),
    amount="112.00",
)
NOTICE_OPEN = _order(
    "the notice stays unconfirmed, the goods are on their way",
    20944,
    "Fulfil the order and tell the customer.",
    "unknown_unresolved",
    _rule("send_notice", "applied_no_answer"),
    _rule("query_notice", "query_down"),
    amount="9.50",
)
STOCK_STUCK = _order(
    "the carrier refused and the stock cannot be released",
    20951,
    "Fulfil the order and tell the customer.",
    "compensation_failed",
    _rule("create_shipment", "refuse"),
    _rule("release_stock", "refuse", status=409),
    amount="310.00",
)
MAIL_REFUSED = _ticket(
    "the ticket is open, the record changed, the mail refused",
    7719,
    "The customer moved; change the record and confirm by mail.",
    "rejected",
    _rule("send_mail", "refuse"),
)
MAIL_UNKNOWN = _ticket(
    "the mail may be out",
    7723,
    "The customer moved; change the record and confirm by mail.",
    "unknown_unresolved",
    _rule("send_mail", "applied_no_answer"),
    _rule("find_mail_by_key", "query_down"),
)
FILE_STUCK = _bank(
    "the credit line was refused and the file cannot be withdrawn",
    88120,
    "Open an account with a credit line for the applicant.",
    "compensation_failed",
    _rule("allocate_limit", "refuse"),
    _rule("withdraw_file", "refuse"),
)
CUSTOMER_TOLD = _bank(
    "the customer was told, then the fee was refused",
    88131,
    "Open an account with a credit line for the applicant.",
    "pivot",
    _rule("debit_fee", "refuse"),
)
SMS_FAILED = _bank(
    "HTTP 500 at step 4: compensated 3, 2, 1 without anybody",
    88140,
    "Open an account with a credit line for the applicant.",
    "",
    _rule("send_sms", "fail_before"),
    ends=("compensated",),
)
ALL_WELL = _order(
    "nothing went wrong", 20960, "Fulfil the order and tell the customer.", "", ends=("completed",)
)

CHAPTERS: tuple[Chapter, ...] = (
    NOTICE_UNKNOWN,
    NOTICE_LOST,
    NOTICE_REFUSED,
    NOTICE_OPEN,
    STOCK_STUCK,
    MAIL_REFUSED,
    MAIL_UNKNOWN,
    FILE_STUCK,
    CUSTOMER_TOLD,
    SMS_FAILED,
    ALL_WELL,
)


def load(progress: Progress) -> None:
    """Publish the shipped contracts and the examples, start every chapter's run and wait until each has come to rest.

    Idempotent: what was published and started before stays as it is. Raises `TimeoutError`.
    """
    publish(progress)
    outside = Outside(os.environ["SIMULATOR_ADMIN_URL"])
    started = {chapter.business: begin(chapter, outside) for chapter in CHAPTERS}
    progress(f"{len(started)} runs started; the world misbehaves in {len(CHAPTERS) - 1} of them")
    await_rest(started, progress)


def publish(progress: Progress) -> None:
    """Publish contracts, then definitions."""
    contracts = sorted((ROOT / "tools" / "catalog").glob("*.toml"))
    for path in contracts:
        api.publish_contract(read_contract(path), actor=PUBLISHER)
    definitions = [p for p in sorted((ROOT / "examples").iterdir()) if p.suffix in (".toml", ".json")]
    for path in definitions:
        api.publish_definition(read_definition(path), actor=PUBLISHER)
    progress(f"{len(contracts)} tool contracts and {len(definitions)} workflows published")


def begin(chapter: Chapter, outside: Outside) -> str:
    """Plan the chapter's world and start its run; returns the run's reference.

    All of the run's calls carry its reference in their keys, so the world misbehaves for this run alone.
    """
    key = f"story:{chapter.business}"
    ref = api.run_ref(AGENT, key)
    if not api.runs(search=ref, limit=1).rows:
        outside.plan(*({**rule, "match": ref} for rule in chapter.rules))
    started = api.start_run(
        actor=AGENT,
        definition=chapter.definition,
        input=dict(chapter.given),
        intent=chapter.intent,
        start_key=key,
    )
    api.ring(started.run_ref)
    return started.run_ref


def await_rest(started: Mapping[str, str], progress: Progress) -> None:
    """Wait until every chapter is with a person or at its end, telling each arrival. Raises `TimeoutError`."""
    waiting = {chapter.business: chapter for chapter in CHAPTERS}
    deadline = time.monotonic() + PATIENCE_S
    while waiting:
        for chapter in list(waiting.values()):
            facts = api.run_facts(started[chapter.business])
            if at_rest(facts):
                del waiting[chapter.business]
                left = f"{len(CHAPTERS) - len(waiting)} of {len(CHAPTERS)}"
                where = facts.handoff.ref if facts.handoff and facts.state.value == "handoff" else facts.state
                progress(f"[{left}] {chapter.business}: {chapter.name} -> {where}")
        if waiting and time.monotonic() > deadline:
            raise TimeoutError(f"these runs did not come to rest: {', '.join(waiting)}")
        time.sleep(0.25)


def at_rest(facts: RunFacts) -> bool:
    """Whether a run is at its end or with a person."""
    return facts.finished_at is not None or (facts.handoff is not None and facts.state.value == "handoff")
