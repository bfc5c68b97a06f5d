"""Quota that customers use up, and the records that a system further down keeps of it.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, either, found, made, need
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call, Refused

OPENING_QUOTA = 1_000


def deduct_quota(tables: Tables, call: Call) -> Answer:
    """Use up a customer's quota; 409 when too little is left. Everybody begins with a thousand units."""
    customer, units = call.text("customer", r"C-\d+"), call.whole("units")
    book = f"quota/{customer}"
    if not tables.balance(book, "granted"):
        tables.post(
            book=book,
            source="granted",
            target="free",
            amount=OPENING_QUOTA,
            business="",
            reason="opening",
        )
    if tables.balance(book, "free") < units:
        raise Refused(409, "exhausted", f"{customer} has too little quota left")
    body = {"deduction": tables.next_id("Q-"), "customer": customer, "units": units, "state": "active"}
    id_ = str(body["deduction"])
    tables.post(book=book, source="free", target="used", amount=units, business=customer, reason=id_)
    return made(tables, call, kind="deduction", business=customer, parent=customer, body=body)


def give_back_quota(tables: Tables, call: Call) -> Answer:
    """Give deducted quota back; 409 when that was done already."""
    thing = need(tables.get("deduction", call.params["deduction"]), "deduction")
    answer = changed(tables, thing, "given_back", of="active", detail={"units": -int(thing.body["units"])})
    tables.post(
        book=f"quota/{thing.business}",
        source="used",
        target="free",
        amount=int(thing.body["units"]),
        business=thing.business,
        reason=thing.id,
    )
    return answer


def get_deduction(tables: Tables, call: Call) -> Answer:
    """A deduction by its number, or the one that a key made."""
    return found(either(tables, call, "deduction", "deduction"), "deduction")


def write_record(tables: Tables, call: Call) -> Answer:
    """Write a record that others build on; a second call writes a second one."""
    customer, subject = call.text("customer"), call.text("subject")
    body = {"record": tables.next_id("REC-"), "customer": customer, "subject": subject, "state": "valid"}
    return made(tables, call, kind="record", business=customer, parent=subject, body=body)


def withdraw_record(tables: Tables, call: Call) -> Answer:
    """Mark a record as no longer valid; 409 when it is already, or once it was consumed further down."""
    thing = need(tables.get("record", call.params["record"]), "record")
    return changed(tables, thing, "withdrawn", of="valid")


def find_record(tables: Tables, call: Call) -> Answer:
    """A record by its number, by the key that wrote it, or the valid one about a subject."""
    subject = call.query.get("subject", "")
    if subject:
        return found(tables.by_parent("record", subject, "valid"), "record")
    return found(either(tables, call, "record", "record"), "record")


ROUTES: tuple[Route, ...] = (
    do("deduct_quota", "quota", "deduct", "POST /deductions", deduct_quota, honours_key=True),
    back(
        "give_back_quota",
        "quota",
        "give_back",
        "POST /deductions/{deduction}/return",
        give_back_quota,
        of="deduct_quota",
    ),
    read("get_deduction", "quota", "/deductions", get_deduction),
    do("write_record", "records", "write", "POST /records", write_record),
    back(
        "withdraw_record",
        "records",
        "withdraw",
        "POST /records/{record}/withdrawal",
        withdraw_record,
        of="write_record",
    ),
    read("find_record", "records", "/records", find_record),
)
