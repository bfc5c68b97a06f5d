"""How each incident of the demo's story is settled: by whom, with which actions, judged by the outside ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from workbench.labs import chapters
from workbench.labs.browser import Visitor
from workbench.labs.casework import (
    PATIENCE_S,
    REASON,
    Desk,
    ask,
    case_of,
    ends,
    facts_of,
    must,
    settled,
    step_becomes,
    unless,
    until,
)
from workbench.labs.chapters import Chapter
from workbench.labs.world import Outside


def _notice_unknown(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Query, found, let it go on: the customer got one notice."""
    chapter = chapters.NOTICE_UNKNOWN
    ref, business = case_of(chapter, chapter.reason), chapter.business
    desk = Desk(people["maya"], ref)
    desk.claim()
    must(
        "retry" not in " ".join(desk.who.get(f"handoffs/{ref}/").acts),
        "a blind retry of an unknown irreversible step is offered",
    )
    outside.heal("query_notice", match=facts_of(chapter).ref)
    if ask(desk, chapter, "send_notice"):
        again = desk.who.post(desk.last)
        must(again.status == 200, f"a second click was answered with {again.status}")
    step_becomes(chapter, "send_notice", "confirmed")
    desk.act("resume")
    ends(chapter, "completed")
    must(
        outside.effects(business=business, tool="send_notice") == ["send_notice"],
        "not exactly one notice went out",
    )
    return "found by the query, completed, one notice outside"


def _notice_lost(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Query, proved absent, retry: one notice in the end."""
    chapter = chapters.NOTICE_LOST
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    desk = Desk(people["jonas"], ref)
    desk.claim()
    outside.heal("query_notice", "send_notice", match=run_ref)
    ask(desk, chapter, "send_notice")
    step_becomes(chapter, "send_notice", "rejected")
    desk.act("retry.send_notice")
    ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_notice")
    must(sent == ["send_notice"], f"{len(sent)} notices went out")
    return "proved absent, sent again, one notice outside"


def _notice_refused(people: Mapping[str, Visitor], outside: Outside) -> str:
    """A stale page is refused, then the retry of the other person goes through."""
    chapter = chapters.NOTICE_REFUSED
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    stale = people["jonas"].get(f"handoffs/{ref}/?act=retry.send_notice").forms["run"]
    desk = Desk(people["maya"], ref)
    outside.heal("send_notice", match=run_ref)
    desk.act("retry.send_notice")
    late = people["jonas"].post(stale, reason=REASON)
    must(late.status == 409, f"a stale page was answered with {late.status}")
    ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_notice")
    must(sent == ["send_notice"], f"{len(sent)} notices went out")
    return "retried once, the stale page of the other person was refused"


def _notice_open(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Accepted as it is by two persons: nothing is sent, the record says that it was never known."""
    chapter = chapters.NOTICE_OPEN
    ref = case_of(chapter, chapter.reason)
    before = outside.arrivals(business=chapter.business, tool="send_notice")
    Desk(people["maya"], ref).act("mark_acceptable", end_state="notice_to_be_confirmed")
    must(facts_of(chapter).proposal is not None, "one person alone accepted what cannot be taken back")
    Desk(people["jonas"], ref).act("confirm_verdict")
    facts = ends(chapter, "closed_accepted")
    must(facts.action("send_notice").state.value == "accepted", "the step is not accepted")
    must(
        outside.arrivals(business=chapter.business, tool="send_notice") == before, "accepting sent something"
    )
    return "accepted with its conditions read back, nothing sent"


def _stock_stuck(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The failed compensation is ordered again once the cause is gone."""
    chapter = chapters.STOCK_STUCK
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    outside.heal("release_stock", match=run_ref)
    Desk(people["maya"], ref).act("compensate")
    ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    must(found == ["reserve_stock", "release_stock"], f"outside: {found}")
    return "stock reserved once, released once"


def _mail_refused(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Not acceptable before the label is on the ticket, acceptable after it."""
    chapter = chapters.MAIL_REFUSED
    ref = case_of(chapter, chapter.reason)
    desk = Desk(people["jonas"], ref)
    desk.act("mark_acceptable", expect=409, end_state="notice_by_hand")
    ticket = facts_of(chapter).action("open_ticket").provider_ref
    outside.third_party(kind="ticket", id=ticket, body={"labels": ["notice-by-hand"]})
    desk.act("mark_acceptable", end_state="notice_by_hand")
    ends(chapter, "closed_accepted")
    must(outside.effects(business=chapter.business, tool="send_mail") == [], "a mail went out")
    return "refused without the label, accepted with it, no mail outside"


def _mail_unknown(people: Mapping[str, Visitor], outside: Outside) -> str:
    """A person found the mail; the reference is verified by a read before it counts."""
    chapter = chapters.MAIL_UNKNOWN
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    desk = Desk(people["maya"], ref)
    desk.claim()
    outside.heal("find_mail_by_key", match=run_ref)
    asked_first = settled("notify_customer")
    pick = "resolve_happened.notify_customer"
    refused = unless(asked_first, desk, chapter, pick, expect=422, reference="MAIL-0000")
    ask(desk, chapter, "notify_customer")
    step_becomes(chapter, "notify_customer", "confirmed")
    desk.act("resume")
    ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_mail")
    must(sent == ["send_mail"], f"{len(sent)} mails went out")
    first = "a wrong reference was refused" if refused else "the engine asked first"
    return f"{first}, the right answer read, one mail outside"


def _file_stuck(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Compensated strictly in reverse once the archive takes it."""
    chapter = chapters.FILE_STUCK
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    must(
        "release_customer_no" not in outside.effects(business=chapter.business),
        "the earlier compensation did not wait",
    )
    outside.heal("withdraw_file", match=run_ref)
    Desk(people["lin"], ref).act("compensate")
    ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    wanted = ["create_customer", "create_file", "withdraw_file", "release_customer_no"]
    must(found == wanted, f"outside: {found}")
    return "file withdrawn, then the customer number released"


def _customer_told(people: Mapping[str, Visitor], outside: Outside) -> str:
    """An irreversible step in the middle: nothing may run by itself; the case goes up."""
    chapter = chapters.CUSTOMER_TOLD
    ref = case_of(chapter, chapter.reason)
    before = outside.effects(business=chapter.business)
    Desk(people["maya"], ref).act("escalate")
    facts = until(chapter, "escalated", lambda f: f.handoff is not None and f.handoff.escalation == 1)
    must(facts.state.value == "handoff", "the case is not open any more")
    must(outside.effects(business=chapter.business) == before, "something ran by itself")
    return "the message cannot be called back: escalated, nothing touched"


def _sms_failed(people: Mapping[str, Visitor], outside: Outside) -> str:
    """S2-10 in the demo: 500 at step 4, compensated 3, 2, 1."""
    chapter = chapters.SMS_FAILED
    ends(chapter, "compensated")
    found = [tool for tool in outside.effects(business=chapter.business) if tool in _COMPENSATING]
    must(found == list(_COMPENSATING), f"outside: {found}")
    return "compensated 3, 2, 1 by itself"


def _approval_crm(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The record takes the change once its cause is gone: retried, once."""
    chapter = chapters.APPROVAL_CRM
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    outside.heal("update_account", match=run_ref)
    Desk(people["maya"], ref).act("retry.update_crm")
    ends(chapter, "completed")
    changed = outside.effects(business=chapter.business, tool="update_account")
    must(changed == ["update_account"], f"the record was changed {len(changed)} times")
    return "retried, the record changed once"


def _accepted_with(
    people: Mapping[str, Visitor],
    outside: Outside,
    chapter: Chapter,
    end_state: str,
    *follow_ups: str,
    about: str = "",
) -> str:
    """Accepted in a declared end state; what that names is then really there outside, under `about` or the case."""
    ref = case_of(chapter, chapter.reason)
    Desk(people["lin"], ref).act("mark_acceptable", end_state=end_state)
    ends(chapter, "closed_accepted")
    deadline = time.monotonic() + PATIENCE_S
    business = about or chapter.business
    while missing := [tool for tool in follow_ups if not outside.effects(business=business, tool=tool)]:
        must(time.monotonic() < deadline, f"outside is no {', '.join(missing)}")
        time.sleep(0.1)
    return f"accepted as {end_state}; outside: {', '.join(follow_ups)}"


def _quota(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The deduction stays; a task to write the record is opened."""
    return _accepted_with(people, outside, chapters.QUOTA, "record_to_be_repaired", "create_task")


def _ticket_changed(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The ticket is labelled for a notice by hand."""
    return _accepted_with(people, outside, chapters.TICKET_CHANGED, "notice_by_hand", "label_ticket")


def _back_order(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The order is flagged, a task opened."""
    return _accepted_with(people, outside, chapters.BACK_ORDER, "back_order", "flag_order", "create_task")


def _refund(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The refund stays, the repair is a task and closing is blocked (S0-24)."""
    return _accepted_with(
        people,
        outside,
        chapters.REFUND,
        "refund_kept_record_open",
        "create_task",
        "block_closing",
        about="C-5531",
    )


def _note(people: Mapping[str, Visitor], outside: Outside) -> str:
    """A person compensates: the note is struck out."""
    chapter = chapters.NOTE
    Desk(people["jonas"], case_of(chapter, chapter.reason)).act("compensate")
    ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    must(found == ["add_note", "strike_note"], f"outside: {found}")
    return "the note was struck out"


def _devices(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Asked again, proved old, retried: the rollout goes on to the twelfth device."""
    chapter = chapters.DEVICES
    ref, run_ref = case_of(chapter, chapter.reason), facts_of(chapter).ref
    desk = Desk(people["lin"], ref)
    desk.claim()
    outside.heal("get_config", "push_config", match=run_ref)
    ask(desk, chapter, "device_08")
    step_becomes(chapter, "device_08", "rejected")
    desk.act("retry.device_08")
    ends(chapter, "completed")
    pushed = outside.effects(business=chapter.business, tool="push_config")
    must(len(pushed) == 12, f"{len(pushed)} configurations were pushed")
    return "twelve devices, each configured once"


def _relabel(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The refused articles go out again, nothing else does."""
    chapter = chapters.RELABEL
    ref = case_of(chapter, chapter.reason)
    before = len(outside.effects(business=chapter.business, tool="relabel_items"))
    Desk(people["maya"], ref).act("retry.relabel")
    ends(chapter, "completed")
    after = len(outside.effects(business=chapter.business, tool="relabel_items"))
    must((before, after) == (193, 200), f"{before} articles before, {after} after")
    return "193 before, the refused 7 after, none twice"


def _signed(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Whoever worked on it cannot sign; another person signs each request, and it is compensated in reverse."""
    chapter = chapters.SIGNED_BANK
    signed = 0
    while facts_of(chapter).finished_at is None:
        facts = until(
            chapter,
            "waiting for a signature, or at its end",
            lambda f: f.state.value == "awaiting_approval" or f.finished_at is not None,
        )
        permits = [
            action.compensation.permit.ref
            for action in facts.actions
            if action.compensation is not None
            and action.compensation.permit is not None
            and action.compensation.permit.state.value == "requested"
        ]
        for permit in permits:
            page = people["maya"].get(f"signoffs/{permit}/")
            must("run" not in page.forms, "an operator is offered to sign")
            form = people["priya"].get(f"signoffs/{permit}/").forms.get("run")
            must(form is not None, f"{permit} cannot be signed")
            if form is not None:
                answer = people["priya"].post(
                    form, **{name: REASON for name in ("reason", "note") if name in form.fields}
                )
                must(
                    answer.status in (200, 202), f"signing was answered with {answer.status}: {answer.result}"
                )
                signed += 1
        time.sleep(0.2)
    must(facts_of(chapter).state.value == "compensated", f"it ended as {facts_of(chapter).state}")
    found = [tool for tool in outside.effects(business=chapter.business) if tool in _COMPENSATING]
    must(found == list(_COMPENSATING), f"outside: {found}")
    return f"{signed} signatures by another person, compensated 3, 2, 1"


def _false_failure(people: Mapping[str, Visitor], outside: Outside) -> str:
    """S1-26: reported as failed although done; asked for, not done again."""
    chapter = chapters.FALSE_FAILURE
    ends(chapter, "completed")
    charged = outside.effects(business=chapter.business, tool="charge_card")
    must(charged == ["charge_card"], f"charged {len(charged)} times")
    return "charged once"


_COMPENSATING = ("reclaim_limit", "withdraw_file", "release_customer_no")

SETTLEMENTS: Mapping[str, Callable[[Mapping[str, Visitor], Outside], str]] = {
    chapters.NOTICE_UNKNOWN.name: _notice_unknown,
    chapters.NOTICE_LOST.name: _notice_lost,
    chapters.NOTICE_REFUSED.name: _notice_refused,
    chapters.NOTICE_OPEN.name: _notice_open,
    chapters.STOCK_STUCK.name: _stock_stuck,
    chapters.MAIL_REFUSED.name: _mail_refused,
    chapters.MAIL_UNKNOWN.name: _mail_unknown,
    chapters.FILE_STUCK.name: _file_stuck,
    chapters.CUSTOMER_TOLD.name: _customer_told,
    chapters.SMS_FAILED.name: _sms_failed,
    chapters.APPROVAL_CRM.name: _approval_crm,
    chapters.QUOTA.name: _quota,
    chapters.TICKET_CHANGED.name: _ticket_changed,
    chapters.BACK_ORDER.name: _back_order,
    chapters.DEVICES.name: _devices,
    chapters.NOTE.name: _note,
    chapters.REFUND.name: _refund,
    chapters.RELABEL.name: _relabel,
    chapters.SIGNED_BANK.name: _signed,
    chapters.FALSE_FAILURE.name: _false_failure,
}
