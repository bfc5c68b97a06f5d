"""`make demo ARGS=--check`: settles the story as those people would, over HTTP, and lets the outside ledger judge.

Every verdict is a line that begins with "ok" or "NOT". Nothing here looks at the ledger's own tables to decide whether
an effect happened: that is asked of the simulated world.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sagas import api
from sagas.facts import RunFacts
from workbench.labs import cast, chapters, story
from workbench.labs.browser import Page, Visitor
from workbench.labs.chapters import Chapter
from workbench.labs.story import Progress
from workbench.labs.world import Outside

REASON = "Checked with the system outside before deciding."
PATIENCE_S = 30.0


class NotSettled(Exception):
    """The page did not do what a person would expect of it."""


@dataclass
class Desk:
    """One person, one case: what that person does on the page."""

    who: Visitor
    ref: str

    def act(self, pick: str, *, expect: int = 200, **filled: str) -> Page:
        """Pick an action, look at its preview, run it. Raises `NotSettled` if the page says something else."""
        page = self.who.get(f"handoffs/{self.ref}/?act={pick}")
        form = page.forms.get("run")
        if form is None:
            off = page.texts.get(f"a-{pick}-why", "it is not on the page")
            raise NotSettled(f"{self.ref}: {pick} is not possible: {off}")
        for name in ("reason", "reference"):
            if name in form.fields:
                form.fields[name] = filled.pop(name, REASON if name == "reason" else "")
        answer = self.who.post(form, **filled)
        if answer.status not in (expect, 202):
            raise NotSettled(f"{self.ref}: {pick} was answered with {answer.status}: {answer.result}")
        self.last = form
        return answer


def run(web_url: str, admin_url: str, progress: Progress) -> list[str]:
    """Settle every chapter of the story; returns the verdicts."""
    outside = Outside(admin_url)
    people = {member.username: _log_in(web_url, member) for member in cast.CAST}
    progress("Settling the story as Maya, Jonas and Lin would")
    verdicts = [_judge(name, lambda s=settle: s(people, outside)) for name, settle in SETTLEMENTS.items()]  # type: ignore[misc]
    verdicts += [_judge("every confirmed effect is there once", lambda: _once(outside))]
    return verdicts


def _log_in(web_url: str, member: cast.Member) -> Visitor:
    visitor = Visitor(web_url)
    visitor.log_in(member.username, member.password)
    return visitor


def _judge(name: str, settle: Callable[[], str]) -> str:
    began = time.monotonic()
    try:
        found = settle()
    except (NotSettled, AssertionError) as error:
        return f"NOT {name}: {error}"
    return f"ok  {name}: {found} ({time.monotonic() - began:.1f} s)"


def _facts(chapter: Chapter) -> RunFacts:
    return api.run_facts(api.run_ref(story.AGENT, f"story:{chapter.business}"))


def _case(chapter: Chapter, reason: str) -> str:
    handoff = _facts(chapter).handoff
    if handoff is None or handoff.reason != reason:
        raise NotSettled(f"{chapter.business} is not with a person for {reason}")
    return handoff.ref


def _until(chapter: Chapter, wanted: str, ready: Callable[[RunFacts], bool]) -> RunFacts:
    deadline = time.monotonic() + PATIENCE_S
    while not ready(facts := _facts(chapter)):
        if time.monotonic() > deadline:
            raise NotSettled(f"{chapter.business} did not become {wanted}; it is {facts.state}")
        time.sleep(0.1)
    return facts


def _ends(chapter: Chapter, state: str) -> RunFacts:
    return _until(chapter, state, lambda facts: facts.state.value == state)


def _step_becomes(chapter: Chapter, step: str, state: str) -> RunFacts:
    return _until(chapter, f"{state} at {step}", lambda facts: facts.action(step).state.value == state)


def _ask(desk: Desk, chapter: Chapter, step: str) -> bool:
    """Query the status of a step; False when the engine asked by itself first and the page was rightly refused."""
    return _unless(
        lambda facts: facts.action(step).state.value != "unknown", desk, chapter, f"query_status.{step}"
    )


def _go_on(desk: Desk, chapter: Chapter) -> bool:
    """Let the run go on; False when it had gone on by itself."""
    return _unless(lambda facts: facts.state.value != "handoff", desk, chapter, "resume")


def _unless(moved: Callable[[RunFacts], bool], desk: Desk, chapter: Chapter, pick: str) -> bool:
    if moved(_facts(chapter)):
        return False
    try:
        desk.act(pick)
    except NotSettled:
        if moved(_facts(chapter)):
            return False
        raise
    return True


def _must(condition: bool, otherwise: str) -> None:
    if not condition:
        raise NotSettled(otherwise)


# --- How each chapter is settled --------------------------------------------------------------------------------


def _notice_unknown(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Query, found, let it go on: the customer got one notice."""
    chapter = chapters.NOTICE_UNKNOWN
    ref, business = _case(chapter, chapter.reason), chapter.business
    desk = Desk(people["maya"], ref)
    _must(
        "retry" not in " ".join(desk.who.get(f"handoffs/{ref}/").acts),
        "a blind retry of an unknown irreversible step is offered",
    )
    outside.heal("query_notice", match=_facts(chapter).ref)
    if _ask(desk, chapter, "send_notice"):
        again = desk.who.post(desk.last)
        _must(again.status == 200, f"a second click was answered with {again.status}")
    _step_becomes(chapter, "send_notice", "confirmed")
    _go_on(desk, chapter)
    _ends(chapter, "completed")
    _must(
        outside.effects(business=business, tool="send_notice") == ["send_notice"],
        "not exactly one notice went out",
    )
    return "found by the query, completed, one notice outside"


def _notice_lost(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Query, proved absent, retry: one notice in the end."""
    chapter = chapters.NOTICE_LOST
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    desk = Desk(people["jonas"], ref)
    outside.heal("query_notice", "send_notice", match=run_ref)
    _ask(desk, chapter, "send_notice")
    _step_becomes(chapter, "send_notice", "rejected")
    desk.act("retry.send_notice")
    _ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_notice")
    _must(sent == ["send_notice"], f"{len(sent)} notices went out")
    return "proved absent, sent again, one notice outside"


def _notice_refused(people: Mapping[str, Visitor], outside: Outside) -> str:
    """A stale page is refused, then the retry of the other person goes through."""
    chapter = chapters.NOTICE_REFUSED
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    stale = people["jonas"].get(f"handoffs/{ref}/?act=retry.send_notice").forms["run"]
    desk = Desk(people["maya"], ref)
    outside.heal("send_notice", match=run_ref)
    desk.act("retry.send_notice")
    late = people["jonas"].post(stale, reason=REASON)
    _must(late.status == 409, f"a stale page was answered with {late.status}")
    _ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_notice")
    _must(sent == ["send_notice"], f"{len(sent)} notices went out")
    return "retried once, the stale page of the other person was refused"


def _notice_open(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Accepted as it is: nothing is sent, the record says that it was never known."""
    chapter = chapters.NOTICE_OPEN
    ref = _case(chapter, chapter.reason)
    before = outside.arrivals(business=chapter.business, tool="send_notice")
    Desk(people["maya"], ref).act("mark_acceptable", end_state="notice_to_be_confirmed")
    facts = _ends(chapter, "closed_accepted")
    _must(facts.action("send_notice").state.value == "accepted", "the step is not accepted")
    _must(
        outside.arrivals(business=chapter.business, tool="send_notice") == before, "accepting sent something"
    )
    return "accepted with its conditions read back, nothing sent"


def _stock_stuck(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The failed compensation is ordered again once the cause is gone."""
    chapter = chapters.STOCK_STUCK
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    outside.heal("release_stock", match=run_ref)
    Desk(people["maya"], ref).act("compensate")
    _ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    _must(found == ["reserve_stock", "release_stock"], f"outside: {found}")
    return "stock reserved once, released once"


def _mail_refused(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Not acceptable before the label is on the ticket, acceptable after it."""
    chapter = chapters.MAIL_REFUSED
    ref = _case(chapter, chapter.reason)
    desk = Desk(people["jonas"], ref)
    desk.act("mark_acceptable", expect=409, end_state="notice_by_hand")
    ticket = _facts(chapter).action("open_ticket").provider_ref
    outside.third_party(kind="ticket", id=ticket, body={"labels": ["notice-by-hand"]})
    desk.act("mark_acceptable", end_state="notice_by_hand")
    _ends(chapter, "closed_accepted")
    _must(outside.effects(business=chapter.business, tool="send_mail") == [], "a mail went out")
    return "refused without the label, accepted with it, no mail outside"


def _mail_unknown(people: Mapping[str, Visitor], outside: Outside) -> str:
    """A person found the mail; the reference is verified by a read before it counts."""
    chapter = chapters.MAIL_UNKNOWN
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    outside.heal("find_mail_by_key", match=run_ref)
    desk = Desk(people["maya"], ref)
    desk.act("resolve_happened.notify_customer", expect=422, reference="MAIL-0000")
    _ask(desk, chapter, "notify_customer")
    _step_becomes(chapter, "notify_customer", "confirmed")
    _go_on(desk, chapter)
    _ends(chapter, "completed")
    sent = outside.effects(business=chapter.business, tool="send_mail")
    _must(sent == ["send_mail"], f"{len(sent)} mails went out")
    return "a wrong reference was refused, the right answer read, one mail outside"


def _file_stuck(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Compensated strictly in reverse once the archive takes it."""
    chapter = chapters.FILE_STUCK
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    _must(
        "release_customer_no" not in outside.effects(business=chapter.business),
        "the earlier compensation did not wait",
    )
    outside.heal("withdraw_file", match=run_ref)
    Desk(people["lin"], ref).act("compensate")
    _ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    wanted = ["create_customer", "create_file", "withdraw_file", "release_customer_no"]
    _must(found == wanted, f"outside: {found}")
    return "file withdrawn, then the customer number released"


def _customer_told(people: Mapping[str, Visitor], outside: Outside) -> str:
    """An irreversible step in the middle: nothing may run by itself; the case goes up."""
    chapter = chapters.CUSTOMER_TOLD
    ref = _case(chapter, chapter.reason)
    before = outside.effects(business=chapter.business)
    Desk(people["maya"], ref).act("escalate")
    facts = _until(chapter, "escalated", lambda f: f.handoff is not None and f.handoff.escalation == 1)
    _must(facts.state.value == "handoff", "the case is not open any more")
    _must(outside.effects(business=chapter.business) == before, "something ran by itself")
    return "the message cannot be called back: escalated, nothing touched"


def _sms_failed(people: Mapping[str, Visitor], outside: Outside) -> str:
    """S2-10 in the demo: 500 at step 4, compensated 3, 2, 1."""
    chapter = chapters.SMS_FAILED
    _ends(chapter, "compensated")
    found = [tool for tool in outside.effects(business=chapter.business) if tool in _COMPENSATING]
    _must(found == list(_COMPENSATING), f"outside: {found}")
    return "compensated 3, 2, 1 by itself"


def _approval_crm(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The record takes the change once its cause is gone: retried, once."""
    chapter = chapters.APPROVAL_CRM
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    outside.heal("update_account", match=run_ref)
    Desk(people["maya"], ref).act("retry.update_crm")
    _ends(chapter, "completed")
    changed = outside.effects(business=chapter.business, tool="update_account")
    _must(changed == ["update_account"], f"the record was changed {len(changed)} times")
    return "retried, the record changed once"


def _accepted_with(
    people: Mapping[str, Visitor],
    outside: Outside,
    chapter: Chapter,
    end_state: str,
    *follow_ups: str,
    about: str = "",
) -> str:
    """Accepted in a declared end state; what the end state names is then really there outside."""
    ref = _case(chapter, chapter.reason)
    Desk(people["lin"], ref).act("mark_acceptable", end_state=end_state)
    _ends(chapter, "closed_accepted")
    deadline = time.monotonic() + PATIENCE_S
    while missing := [
        tool for tool in follow_ups if not outside.effects(business=chapter.business, tool=tool)
    ]:
        _must(time.monotonic() < deadline, f"outside is no {', '.join(missing)}")
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
    Desk(people["jonas"], _case(chapter, chapter.reason)).act("compensate")
    _ends(chapter, "compensated")
    found = outside.effects(business=chapter.business)
    _must(found == ["add_note", "strike_note"], f"outside: {found}")
    return "the note was struck out"


def _devices(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Asked again, proved old, retried: the rollout goes on to the twelfth device."""
    chapter = chapters.DEVICES
    ref, run_ref = _case(chapter, chapter.reason), _facts(chapter).ref
    outside.heal("get_config", "push_config", match=run_ref)
    desk = Desk(people["lin"], ref)
    desk.act("query_status.device_08")
    _step_becomes(chapter, "device_08", "rejected")
    desk.act("retry.device_08")
    _ends(chapter, "completed")
    pushed = outside.effects(business=chapter.business, tool="push_config")
    _must(len(pushed) == 12, f"{len(pushed)} configurations were pushed")
    return "twelve devices, each configured once"


def _relabel(people: Mapping[str, Visitor], outside: Outside) -> str:
    """The refused articles go out again, nothing else does."""
    chapter = chapters.RELABEL
    ref = _case(chapter, chapter.reason)
    before = len(outside.effects(business=chapter.business, tool="relabel_items"))
    Desk(people["maya"], ref).act("retry.relabel")
    _ends(chapter, "completed")
    after = len(outside.effects(business=chapter.business, tool="relabel_items"))
    _must((before, after) == (193, 200), f"{before} articles before, {after} after")
    return "193 before, the refused 7 after, none twice"


def _signed(people: Mapping[str, Visitor], outside: Outside) -> str:
    """Whoever worked on it cannot sign; another person signs each request, and it is compensated in reverse."""
    chapter = chapters.SIGNED_BANK
    signed = 0
    while _facts(chapter).finished_at is None:
        facts = _until(
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
            _must("run" not in page.forms, "an operator is offered to sign")
            form = people["priya"].get(f"signoffs/{permit}/").forms.get("run")
            _must(form is not None, f"{permit} cannot be signed")
            if form is not None:
                answer = people["priya"].post(
                    form, **{name: REASON for name in ("reason", "note") if name in form.fields}
                )
                _must(
                    answer.status in (200, 202), f"signing was answered with {answer.status}: {answer.result}"
                )
                signed += 1
        time.sleep(0.2)
    _must(_facts(chapter).state.value == "compensated", f"it ended as {_facts(chapter).state}")
    found = [tool for tool in outside.effects(business=chapter.business) if tool in _COMPENSATING]
    _must(found == list(_COMPENSATING), f"outside: {found}")
    return f"{signed} signatures by another person, compensated 3, 2, 1"


def _false_failure(people: Mapping[str, Visitor], outside: Outside) -> str:
    """S1-26: reported as failed although done; asked for, not done again."""
    chapter = chapters.FALSE_FAILURE
    _ends(chapter, "completed")
    charged = outside.effects(business=chapter.business, tool="charge_card")
    _must(charged == ["charge_card"], f"charged {len(charged)} times")
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


def _once(outside: Outside) -> str:
    """What the pages call confirmed is there once outside; what they call anything else is not taken for done."""
    looked = 0
    for chapter in chapters.CHAPTERS:
        units = [unit for action in _facts(chapter).actions for unit in (action.items or (action,))]
        for unit in units:
            if not unit.contract.has_effect:
                continue
            looked += 1
            times, where = outside.times(unit.key), f"{chapter.business} {unit.step} {unit.item}".strip()
            if unit.state.value == "confirmed":
                _must(times == 1, f"{where} is confirmed and happened {times} times")
            elif unit.state.value in ("rejected", "skipped", "not_started"):
                _must(times == 0, f"{where} is {unit.state} and happened {times} times")
    return f"{looked} calls compared with the ledger outside, one by one"
