"""The incidents of the demo: what the world does, the run that meets it, and how it comes to a person.

Values only; `workbench.labs.story` makes them happen and `workbench.labs.settlements` settles them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


def _chapter(
    name: str,
    business: str,
    definition: str,
    given: Mapping[str, Any],
    intent: str,
    reason: str,
    *rules: dict[str, Any],
    ends: tuple[str, ...] = (),
) -> Chapter:
    return Chapter(
        name=name,
        business=business,
        definition=definition,
        given=given,
        intent=intent,
        rules=rules,
        reason=reason,
        ends=ends,
    )


_MAIL = {"customer_mail": "customer@example.org", "text": "We are on it."}

APPROVAL_CRM = _chapter(
    "the approval is asked for, the record refused the change",
    "C-411",
    "approval_crm",
    {
        "customer": "C-411",
        "kind": "credit",
        "text": "Raise the limit to 500.",
        "fields": {"limit": "pending"},
    },
    "Ask for a higher limit and say so on the record.",
    "rejected",
    _rule("update_account", "refuse"),
)
QUOTA = _chapter(
    "the quota is deducted, the billing record is missing",
    "C-412",
    "quota_record",
    {"customer": "C-412", "units": 5, "subject": "usage/412"},
    "Book the usage of this morning.",
    "rejected",
    _rule("write_record", "refuse"),
)
TICKET_CHANGED = _chapter(
    "the ticket is changed, the customer was not told",
    "C-413",
    "ticket_change_notice",
    {
        "ticket_id": "T-413",
        "customer": "C-413",
        "fields": {"queue": "second line", "priority": "high"},
        **_MAIL,
    },
    "Move the ticket to the second line and tell the customer.",
    "rejected",
    _rule("send_mail", "refuse"),
)
BACK_ORDER = _chapter(
    "the order is placed, the stock could not be locked",
    "O-21007",
    "order_intake",
    {"order": "O-21007", "sku": "SKU-118", "qty": 2, "text": "Your order is placed."},
    "Place the order and confirm it.",
    "rejected",
    _rule("reserve_stock", "refuse", status=409),
)
DEVICES = _chapter(
    "seven devices run the new configuration, the eighth does not answer",
    "CHG-3310",
    "device_rollout",
    {
        "change": "CHG-3310",
        "config": {"vlan": 20, "mtu": 9000},
        "devices": [f"sw-fra2-{number:02d}" for number in range(1, 13)],
    },
    "Roll the new configuration out to the twelve switches.",
    "unknown_unresolved",
    _rule("push_config", "no_answer", match=["sw-fra2-08"]),
    _rule("get_config", "query_down"),
)
NOTE = _chapter(
    "the note is on the customer, the approval was not asked for",
    "C-414",
    "note_and_approval",
    {
        "customer": "C-414",
        "kind": "credit",
        "text": "Raise the limit to 500.",
        "note": "A higher limit is being decided.",
    },
    "Note the wish and ask for the approval.",
    "rejected",
    _rule("submit_request", "refuse"),
)
REFUND = _chapter(
    "the refund is paid, the record says pending",
    "O-5531",
    "refund_crm",
    {
        "order": "O-5531",
        "customer": "C-5531",
        "payment": "PAID-5531",
        "amount": "86.40",
        "reason": "Parcel lost",
    },
    "Give the customer the money back and bring the record up to date.",
    "rejected",
    _rule("update_account", "refuse", match=['"paid"']),
)
RELABEL = _chapter(
    "7 of 200 articles are locked",
    "B-418",
    "batch_relabel",
    {"batch": "B-418", "label": "sale", "items": [{"id": f"ART-{number}"} for number in range(1, 201)]},
    "Put the sale label on the spring range.",
    "partial",
    _rule(
        "relabel_items",
        "partial",
        items=[f"ART-{number}" for number in (17, 44, 71, 98, 125, 152, 179)],
        item_state="locked",
        times=1,
    ),
)
SIGNED_BANK = _chapter(
    "the bank flow waits for a signature",
    "A-88150",
    "bank_opening_signed",
    {
        "application": "A-88150",
        "name": "R. Sample",
        "id_no": "ID088150",
        "limit": "5000.00",
        "phone": "+49 40 555 0100",
        "fee": "25.00",
    },
    "Open an account with a credit line for the applicant.",
    "",
    _rule("send_sms", "fail_before"),
    ends=("awaiting_approval",),
)
TRAVEL = _chapter(
    "the hotel is booked out, giving the money back waits for a signature",
    "TR-640",
    "travel_booking",
    {"trip": "TR-640", "flight": "AB-400", "hotel": "HARBOUR-12", "amount": "640.00"},
    "Book flight and hotel for the trip.",
    "",
    _rule("book_hotel", "refuse", status=409),
    ends=("awaiting_approval",),
)
FALSE_FAILURE = _chapter(
    "reported as failed although done: asked, not charged twice",
    "O-21020",
    "order_checkout",
    {"order": "O-21020", "sku": "SKU-118", "qty": 2, "amount": "86.40", "address": "Dock 4"},
    "Check the order out.",
    "",
    _rule("charge_card", "fail_after", attempts=[1]),
    ends=("completed",),
)
LINE = _chapter(
    "the line is set up later and reports back by itself",
    "C-415",
    "line_activation",
    {"customer": "C-415", "product": "voice", "delay_ms": 1500, **_MAIL},
    "Set up the line and tell the customer.",
    "",
    ends=("completed",),
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
    APPROVAL_CRM,
    QUOTA,
    TICKET_CHANGED,
    BACK_ORDER,
    DEVICES,
    NOTE,
    REFUND,
    RELABEL,
    SIGNED_BANK,
    TRAVEL,
    SMS_FAILED,
    FALSE_FAILURE,
    LINE,
    ALL_WELL,
)
