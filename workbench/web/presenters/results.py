"""What a command led to, in place: done is past tense only, and after any refusal "nothing was sent" comes first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import ActionFacts, RunFacts
from sagas.states import FINAL_RUN_STATES, ActionState, CompensationState, RunState
from workbench import policies
from workbench.commands import Change, Result
from workbench.errors import Answer
from workbench.web.presenters import steps, text, words
from workbench.web.presenters.clock import Clock, span_words
from workbench.web.presenters.queue import sentence_join
from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A field that is wrong, for the summary that links to it."""

    name: str
    says: str


@dataclass(frozen=True, kw_only=True)
class Changed:
    """One line of "you saw / now"."""

    what: SafeString
    by: str
    saw: SafeString
    now: SafeString


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A result note. `on_top`: above the case (a conflict); else inside the panel, where the action was."""

    tone: str
    icon: str
    headline: Words
    says: Words = ""
    more: Words = ""
    alert: bool = False
    on_top: bool = False
    waiting: bool = False
    verb: str = ""
    step: str = ""
    command_id: str = ""
    problems: tuple[Problem, ...] = ()
    changes: tuple[Changed, ...] = ()
    saw_title: str = ""
    now_title: str = ""
    use: str = ""
    use_url: str = ""
    leave: str = ""
    announce: str = ""


def result(result: Result, *, step: str, url: str, clock: Clock) -> Shown:
    """The note for one result."""
    match result.status:
        case Answer.ACCEPTED:
            return _accepted(result, step, clock)
        case Answer.DUPLICATE:
            return _duplicate(result, step, clock)
        case Answer.CONFLICT:
            return _conflict(result, url, clock)
        case Answer.INVALID:
            return _invalid(result)
        case Answer.EXPIRED:
            return _plain(result, "unk", "clock")
        case Answer.FROZEN:
            return _plain(result, "unk", "pause")
        case Answer.TOO_MANY:
            return _plain(result, "unk", "clock")
        case _:
            return _plain(result, "bad", "lock")


def _accepted(result: Result, step: str, clock: Clock) -> Shown:
    at = clock.time(result.at) if result.at else clock.time(clock.now)
    if result.scheduled:
        return Shown(
            tone="run",
            icon="sent",
            headline=_("Accepted at {at}.").format(at=at),
            says=_("It is being carried out. What comes of it shows here."),
            waiting=True,
            verb=result.verb,
            step=step,
            command_id=result.command_id,
            announce=_("Accepted. Waiting for the answer."),
        )
    waits = result.facts.proposal if result.facts else None
    if waits is not None and waits.verb == result.verb:
        kept = _("Kept at {at}. It counts once a second person confirms it.").format(at=at)
        return Shown(tone="unk", icon="sign", headline=kept, command_id=result.command_id, announce=kept)
    done = recorded(result.verb, at)
    return Shown(tone="ok", icon="ok", headline=done, command_id=result.command_id, announce=done)


def recorded(verb: str, at: str) -> str:
    """What has been done once the command was accepted and nothing is left to run."""
    known = {
        "unfreeze": _("Recorded at {at}. A freeze is lifted once a second person has lifted it."),
        "keep_frozen": _("Recorded at {at}. The freeze stays in force."),
        "open_tool": _("Opened at {at}. Who waited for the tool comes back paced."),
        "claim": _("You claimed this case at {at}."),
        "release": _("You released this case at {at}."),
        "comment": _("Your comment was kept at {at}."),
        "escalate": _("Escalated at {at}."),
        "assign": _("Handed over at {at}."),
        "ask_for_case": _("Asked at {at}. Whoever holds the case sees it; nothing has changed hands."),
        "reopen": _("Reopened at {at} as a new case."),
        "accept_items": _("Accepted at {at}. The items stay as they are."),
        "mark_acceptable": _("Accepted and closed at {at}."),
        "resolve_happened": _("Recorded at {at}: it did happen."),
        "resolve_not_happened": _("Recorded at {at}: it did not happen."),
        "pause_compensation": _("Paused at {at}. The call in flight is brought to its end."),
        "withdraw_signoff": _("Withdrawn at {at}. Nothing ran."),
        "confirm_verdict": _("Confirmed at {at}. It counts now."),
        "decline_verdict": _("Declined at {at}. Nothing was settled."),
    }
    return known.get(verb, _("Done at {at}.")).format(at=at)


def _duplicate(result: Result, step: str, clock: Clock) -> Shown:
    at = clock.time(result.at)
    headline = _("Already done at {at}. It ran once.").format(at=at)
    more = _("Request {id}.").format(id=result.command_id[:8])
    return Shown(
        tone="ok",
        icon="ok",
        headline=headline,
        more=more,
        verb=result.verb,
        step=step,
        waiting=result.scheduled,
        command_id=result.command_id,
        announce=headline,
    )


def _conflict(result: Result, url: str, clock: Clock) -> Shown:
    stale = result.code == "stale"
    now = result.facts.version if result.facts else None
    saw = result.saw_version
    says = str(result.sentence) if stale else _("Nothing was sent.")
    last = _last_person(result)
    who = f"{last.by}, {clock.time(last.at)}. " if last else ""
    more = (
        who
        + _(
            "Your page shows version {saw}, the case is now version {now}. Your reason is kept below."
        ).format(saw=saw, now=now)
        if stale
        else ""
    )
    return Shown(
        tone="unk",
        icon="warn",
        headline=says,
        says="" if stale else str(result.sentence),
        more=more,
        alert=True,
        on_top=stale,
        command_id=result.command_id,
        changes=tuple(_changes(result, clock)) if stale else (),
        saw_title=_("You saw (v{n})").format(n=saw) if saw else _("You saw"),
        now_title=_("Now (v{n})").format(n=now) if now else _("Now"),
        use=_("Use version {n}").format(n=now) if stale else "",
        use_url=f"{url}preview/" if stale else "",
        leave=_("Leave it to {who}").format(who=last.by) if last else _("Back to the queue"),
        announce=says,
    )


def _last_person(result: Result) -> Change | None:
    """The last thing that a person did since; what the engine did is nobody to leave it to."""
    people = (
        change
        for change in reversed(result.changed)
        if change.by
        and change.at
        and (change.kind == "claim" or change.what.startswith(("human.", "command.")))
    )
    return next(people, None)


def _changes(result: Result, clock: Clock) -> Iterator[Changed]:
    names = {"version": _("Version"), "state": _("Run"), "claim": _("Owner")}
    for change in result.changed:
        if change.kind == "entry" or change.what == "version":
            continue
        by = " · ".join(part for part in (change.by, clock.time(change.at) if change.at else "") if part)
        yield Changed(
            what=text.inert(names.get(change.what, change.what)),
            by=by,
            saw=_worded(change, change.saw),
            now=_worded(change, change.now),
        )


def _worded(change: Change, value: str) -> SafeString:
    if change.kind == "claim":
        return text.inert(value or _("Unclaimed"))
    states, __, made_up = value.partition(", compensation ")
    look = words.RUN_STATES.get(states) if change.what == "state" else words.STATES.get(states)
    word = str(look.word) if look else states or "—"
    extra = words.COMPENSATION_STATES.get(made_up)
    return text.inert(f"{word}, {extra.word}" if extra else word)


def _invalid(result: Result) -> Shown:
    problems = tuple(Problem(name=name, says=str(says)) for name, says in result.field_errors.items())
    if not problems:
        return _plain(result, "bad", "warn")
    headline = ngettext(
        "Nothing was sent. {n} thing to fix:", "Nothing was sent. {n} things to fix:", len(problems)
    ).format(n=len(problems))
    return Shown(
        tone="bad",
        icon="warn",
        headline=headline,
        alert=True,
        problems=problems,
        command_id=result.command_id,
        announce=headline,
    )


def _plain(result: Result, tone: str, icon: str) -> Shown:
    sentence = str(result.sentence)
    return Shown(
        tone=tone,
        icon=icon,
        headline=_("Nothing was sent."),
        says=sentence,
        alert=True,
        command_id=result.command_id,
        announce=sentence,
    )


def came_of(facts: RunFacts, *, verb: str, step: str, clock: Clock) -> Shown:
    """What came of a command that was being carried out: done only once it is proved."""
    action = next((one for one in reversed(facts.actions) if one.step == step), None) if step else None
    return _of_step(action, clock, verb, step) if action else _of_run(facts, verb, step, clock)


def _of_step(action: ActionFacts, clock: Clock, verb: str, step: str) -> Shown:
    at = clock.time(action.settled_at or clock.now)
    system = action.contract.system
    match action.state:
        case ActionState.CONFIRMED | ActionState.COMPENSATED | ActionState.ACCEPTED:
            says = _("{step} is {state}, {at}.").format(
                step=action.step, state=steps.look_of(action).word, at=at
            )
            return Shown(tone="ok", icon="ok", headline=says, announce=says)
        case ActionState.REJECTED:
            says = _("{step} is Rejected, {at}: it did not take effect.").format(step=action.step, at=at)
            return Shown(tone="run", icon="bad", headline=says, announce=says)
        case ActionState.UNKNOWN:
            says = _("No answer from {system}. The outcome is not known.").format(system=system)
            more = _("Nothing was assumed.")
            if action.due_at is not None and action.due_at > clock.now:
                again = _("Next automatic check {at}.").format(at=clock.time(action.due_at))
                more = sentence_join([more, again])
            return Shown(tone="unk", icon="unk", headline=says, more=more, announce=says)
        case _:
            return _still(verb, step)


def _of_run(facts: RunFacts, verb: str, step: str, clock: Clock) -> Shown:
    made_up = [action.compensation for action in facts.actions if action.compensation]
    under_way = {CompensationState.DUE, CompensationState.SENT}
    if any(one.state in under_way for one in made_up):
        return _still(verb, step)
    if any(one.state is CompensationState.UNKNOWN for one in made_up):
        says = _("A compensation got no answer. The outcome is not known.")
        return Shown(tone="unk", icon="unk", headline=says, more=_("Nothing was assumed."), announce=says)
    if any(one.state is CompensationState.FAILED for one in made_up):
        says = _("A compensation failed. The rest was not touched.")
        return Shown(tone="bad", icon="compfailed", headline=says, announce=says)
    if facts.state not in FINAL_RUN_STATES and facts.state is not RunState.HANDOFF:
        return _still(verb, step)
    look = words.RUN_STATES[str(facts.state)]
    says = _("The run is now: {state}.").format(state=look.word)
    return Shown(tone=look.tone or "run", icon=look.icon, headline=says, announce=says)


def _still(verb: str, step: str) -> Shown:
    return Shown(
        tone="run",
        icon="sent",
        headline=_("It is being carried out."),
        says=_("What comes of it shows here."),
        waiting=True,
        verb=verb,
        step=step,
    )


@dataclass(frozen=True, kw_only=True)
class Unclaimed:
    """Why a claim did not work; `lost` where somebody else holds the case, who can be asked for it."""

    says: str
    lost: bool


def unclaimed(result: Result, *, reader: str, clock: Clock) -> Unclaimed:
    """Why a claim did not work: who was faster and by how much, else the server's own reason."""
    handoff = policies.holder(result.facts) if result.facts and result.status is Answer.CONFLICT else None
    if handoff is None or handoff.claimed_at is None or handoff.claimed_by == reader:
        return Unclaimed(says=str(result.sentence), lost=False)
    span = span_words(max(int((clock.now - handoff.claimed_at).total_seconds()), 0))
    says = _("{who} claimed it at {at}, {span} before you.").format(
        who=handoff.claimed_by_name, at=clock.time(handoff.claimed_at), span=span
    )
    return Unclaimed(says=says, lost=True)


def claim_refused(result: Result, *, reader: str, clock: Clock) -> Shown:
    """The same as the note on top of a whole case, for whoever claims without JavaScript."""
    problem = unclaimed(result, reader=reader, clock=clock)
    plain = replace(_plain(result, "unk", "warn"), on_top=True)
    if not problem.lost:
        return plain
    return replace(plain, headline=problem.says, says=_("You can read along."), announce=problem.says)
