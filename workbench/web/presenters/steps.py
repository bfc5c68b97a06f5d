"""The steps of a case with all their evidence: what was sent, what came back, what stood there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import ActionFacts, AttemptFacts, CompensationFacts, EvidenceFacts, RunFacts
from sagas.states import ActionState
from tools import texts
from tools.contract import Json
from tools.redact import mask
from workbench.web.presenters import marks, shares, text, words
from workbench.web.presenters.clock import Clock, seconds_words
from workbench.web.presenters.words import ClassWord, StateWord, Words

MOST_FIELDS = 12
AD_HOC = "ad_hoc"
MOST = 50
"""Steps that a case tells one by one; of a longer run those that need a look and their neighbours."""
_OPEN_ICONS = frozenset({"bad", "unk", "compfailed", "held"})
_AT_WORK = frozenset({ActionState.SENT, ActionState.CONFIRMED, ActionState.PARTIAL})


@dataclass(frozen=True, kw_only=True)
class Line:
    """A label and its value; `copy` when the value is worth copying, `tone` a colour class."""

    label: Words
    value: SafeString
    copy: str = ""
    mono: bool = False
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One field before the call and as last verified."""

    field: str
    before: SafeString
    now: SafeString
    changed: bool
    unknown: bool


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What stood there before the call beside what was last read."""

    before_at: str
    now_at: str
    rows: tuple[FieldRow, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. `tool` names the step too where others call the same tool; `about` says in words what it does; `open`
    when it needs a look.
    """

    number: int
    id: str
    tool: str
    about: SafeString
    state: StateWord
    recovery: ClassWord
    at: str
    open: bool
    lines: tuple[Line, ...]
    diff: Diff | None
    remedy: tuple[SafeString, ...]
    evidence: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Account:
    """What an agent said about a step: why this tool, and what it saw before. Nobody has verified it."""

    step: str
    why: str
    evidence: str


def accounts(facts: RunFacts) -> tuple[Account, ...]:
    """The agent's own words per step; what the published workflow says of a step is not the agent's."""
    own = {step.id: step.why for step in facts.definition.steps} if facts.definition.name != AD_HOC else {}
    found = (
        Account(
            step=action.step,
            why="" if action.why == own.get(action.step) else action.why,
            evidence=action.evidence_note,
        )
        for action in told(facts)
    )
    return tuple(one for one in found if one.why or one.evidence)


def steps(facts: RunFacts, clock: Clock) -> tuple[Step, ...]:
    """The steps that are told, in order, replaced generations included."""
    again = repeated(facts)
    return tuple(_step(action, clock, named=action.tool in again) for action in _part(facts.actions))


def told(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """The steps that a page tells one by one, without replaced generations."""
    return _part(current(facts))


def untold(facts: RunFacts) -> str:
    """How many steps are left to the page of the run; "" where none are."""
    n = len(current(facts)) - len(told(facts))
    return ngettext("{n} step more", "{n} steps more", n).format(n=shares.number(n)) if n else ""


def _part(actions: tuple[ActionFacts, ...]) -> tuple[ActionFacts, ...]:
    """All, or of many what needs a look and what stands around it; else what stands around the front of the run."""
    if len(actions) <= MOST:
        return actions
    wanted = [n for n, action in enumerate(actions) if look_of(action).icon in _OPEN_ICONS][:MOST]
    front = max((n for n, action in enumerate(actions) if action.state in _AT_WORK), default=0)
    middle, first = (wanted or [front])[0], frozenset(wanted)
    chosen = sorted(range(len(actions)), key=lambda n: (n not in first, abs(n - middle)))[:MOST]
    return tuple(actions[n] for n in sorted(chosen))


def repeated(facts: RunFacts) -> frozenset[str]:
    """The tools that several steps call: a step of one of them is told apart by its own name alone."""
    calls = Counter(action.tool for action in current(facts))
    return frozenset(tool for tool, number in calls.items() if number > 1)


def summary(facts: RunFacts) -> str:
    """How many steps are in which state, in words."""
    sums: dict[str, int] = {}
    for action in current(facts):
        word = str(look_of(action).word)
        sums[word] = sums.get(word, 0) + 1
    return _(", ").join(f"{count} {word.lower()}" for word, count in sums.items())


def current(facts: RunFacts) -> tuple[ActionFacts, ...]:
    """The steps without replaced generations."""
    return tuple(action for action in facts.actions if action.state is not ActionState.SUPERSEDED)


def look_of(action: ActionFacts) -> StateWord:
    """An action's state with its compensation folded in."""
    made_up = str(action.compensation.state) if action.compensation else ""
    return marks.state_of(action.contract, str(action.state), made_up)


def said(action: ActionFacts) -> SafeString:
    """The tool's own sentence for "this has happened", filled from masked arguments and result."""
    args, result = masked(action, action.args), masked(action, action.result)
    return text.inert(texts.fill(action.contract.texts.done, args=args, result=result))


def masked(action: ActionFacts, value: Json) -> Json:
    """A value without the contract's secret fields."""
    return mask(value, action.contract.secret_fields)


def without_secrets(value: Json) -> Json:
    """A value that no contract describes, without what looks like a secret."""
    return mask(value)


def _step(action: ActionFacts, clock: Clock, *, named: bool) -> Step:
    look = look_of(action)
    confirmed = action.state in {ActionState.CONFIRMED, ActionState.COMPENSATED, ActionState.ACCEPTED}
    return Step(
        number=action.position,
        id=action.step,
        tool=f"{action.tool} · {action.step}" if named else action.tool,
        about=said(action) if confirmed else text.inert(action.contract.texts.title, 160),
        state=look,
        recovery=marks.recovery_of(action.contract),
        at=clock.time(action.settled_at or action.sent_at),
        open=look.icon in _OPEN_ICONS,
        lines=tuple(_lines(action, clock)),
        diff=_diff(action, clock),
        remedy=remedy(action, clock),
        evidence=tuple(_evidence(action, clock)),
    )


def _lines(action: ActionFacts, clock: Clock) -> Iterator[Line]:
    if not action.sent_at:
        yield Line(label=_("Sent"), value=text.say(_("never sent")))
    else:
        used = ngettext("attempt {n}", "attempt {n}", action.attempts_used).format(n=action.attempts_used)
        yield Line(label=_("Sent"), value=text.inert(f"{clock.exact(action.sent_at)} · {used}"))
        yield Line(label=_("Answer"), value=_answer(action))
    for attempt in action.attempts[:-1]:
        label = _("Attempt {n}").format(n=attempt.number)
        yield Line(
            label=label, value=text.inert(f"{clock.exact(attempt.sent_at)} · {attempt_words(attempt)}")
        )
    yield Line(label=_("Idempotency key"), value=text.inert(action.key, 200), copy=action.key, mono=True)
    if action.provider_ref:
        ref = text.inert(action.provider_ref, 200)
        yield Line(label=_("Provider reference"), value=ref, copy=action.provider_ref, mono=True)
    elif action.sent_at:
        yield Line(label=_("Provider reference"), value=text.say(_("none received")), tone="unkt")
    if action.args is not None:
        yield Line(label=_("Arguments"), value=_document(action, action.args), mono=True)
    if action.result is not None:
        yield Line(label=_("Result"), value=_document(action, action.result), mono=True)
    yield Line(label=_("Contract"), value=contract_line(action))


def _document(action: ActionFacts, value: Json) -> SafeString:
    """Arguments or a result; those of a call over many begin only, since its items stand in a table."""
    shown = masked(action, value)
    return text.as_line(shown, 240) if action.items else text.as_json(shown)


def _answer(action: ActionFacts) -> SafeString:
    if action.attempts:
        return text.inert(attempt_words(action.attempts[-1]))
    if action.error_class:
        return text.inert(f"{error_words(action.error_class)} {action.error_detail}".strip())
    return text.say(_("not settled yet")) if action.state is ActionState.SENT else text.say(_("received"))


def attempt_words(attempt: AttemptFacts) -> str:
    """What came back from one try: status, duration, and what the answer said."""
    if attempt.finished_at is None:
        return _("no answer yet")
    status = str(attempt.status) if attempt.status else error_words(attempt.error_class or attempt.answer)
    parts = [status, seconds_words(attempt.duration_ms), attempt.detail[:300]]
    return " · ".join(part for part in parts if part)


def error_words(name: str) -> str:
    """An error class in words."""
    known = {
        "no_answer": _("no answer"),
        "not_sent": _("could not be sent"),
        "garbage": _("an answer that cannot be read"),
        "server": _("server error"),
        "temporary": _("temporary error"),
        "throttled": _("told to wait"),
        "validation": _("refused: not valid"),
        "permission": _("refused: not permitted"),
        "conflict": _("refused: conflict"),
        "not_found": _("refused: not found"),
        "refused": _("refused"),
        "in_flight": _("still being worked on"),
        "partial": _("done in part"),
        "unknown": _("no answer"),
    }
    return known.get(name, name)


def contract_line(action: ActionFacts) -> SafeString:
    """The contract in one line: class, de-duplication, status query, version."""
    contract = action.contract
    query = _("yes") if contract.status_query else _("no")
    return text.say(
        _("{kind}, de-duplication: {dedup}, status query: {query}, version {version}"),
        kind=str(marks.recovery_of(contract).word).lower(),
        dedup=str(words.KEY_SUPPORT.get(str(contract.idempotency.support), contract.idempotency.support)),
        query=query,
        version=contract.version,
    )


def remedy(action: ActionFacts, clock: Clock) -> tuple[SafeString, ...]:
    """What makes up for this step, in whole sentences; empty for a step that changes nothing."""
    contract, made_up = action.contract, action.compensation
    if not contract.has_effect:
        return ()
    if contract.compensation is None or (made_up is None and contract.recovery_class == "irreversible"):
        to = contract.escalation.to
        hand = text.say(_("By hand: {to}."), to=to) if to else text.say("")
        return tuple(part for part in (text.say(_("No compensation is possible.")), hand) if part)
    rule = contract.compensation
    kind = words.COMPENSATION_KINDS.get(str(rule.kind), rule.kind)
    sentences = [text.say(_("{tool}: {kind}."), tool=text.strong(rule.tool), kind=str(kind))]
    if made_up is not None:
        sentences.append(_registered(made_up, clock))
    sentences += [text.say(_("Needs: {what}."), what=need.text) for need in rule.preconditions]
    if rule.leaves:
        sentences.append(text.say(_("What stays: {what}"), what=rule.leaves))
    sentences.append(text.say(_("Needs a sign-off.") if rule.who == "approval" else _("No sign-off.")))
    return tuple(sentences)


def _registered(made_up: CompensationFacts, clock: Clock) -> SafeString:
    state = words.COMPENSATION_STATES.get(str(made_up.state))
    return text.say(
        _("Registered {at}, before the call; now: {state}."),
        at=clock.time(made_up.registered_at),
        state=str(state.word if state else made_up.state).lower(),
    )


def _evidence(action: ActionFacts, clock: Clock) -> Iterator[Line]:
    sources = {
        "query": _("Status query"),
        "read": _("Read back"),
        "late": _("Late answer"),
        "callback": _("Message from the provider"),
        "person": _("Stated by a person"),
    }
    made_up = action.compensation.evidence if action.compensation else ()
    for same in _alike((*action.evidence, *made_up)):
        proof, last = same[0], same[-1]
        parts = [clock.exact(proof.at), verdict_words(proof.verdict), proof.reference, proof.detail[:300]]
        if proof.source == "person":
            parts.append(proof.by)
        if len(same) > 1:
            parts.append(_("{n} times, last {at}").format(n=len(same), at=clock.time(last.at)))
        value = text.inert(" · ".join(part for part in parts if part))
        yield Line(label=sources.get(proof.source, proof.source), value=value)


def _alike(proofs: Iterable[EvidenceFacts]) -> Iterator[list[EvidenceFacts]]:
    """Runs of evidence that say the same, so that twenty silent queries are one line."""

    def sense(proof: EvidenceFacts) -> tuple[str, ...]:
        return (proof.source, proof.verdict, proof.reference, proof.detail)

    for __, same in groupby(proofs, key=sense):
        yield list(same)


def verdict_words(verdict: str) -> str:
    """What a query or a read found, in words."""
    known = {
        "found": _("found"),
        "denied": _("not carried out"),
        "absent": _("not found"),
        "no_answer": _("no answer"),
        "confirmed": _("found"),
        "rejected": _("not carried out"),
        "happened": _("it happened"),
        "not_happened": _("it did not happen"),
        "unknown": _("not known"),
    }
    return known.get(verdict, verdict)


def _diff(action: ActionFacts, clock: Clock) -> Diff | None:
    if action.prior_state is None:
        return None
    read = next((proof for proof in reversed(action.evidence) if isinstance(proof.body, dict)), None)
    before = dict(flat(masked(action, action.prior_state)))
    now = dict(flat(masked(action, read.body))) if read else {}
    unknown = action.state is ActionState.UNKNOWN and not now
    names = list(dict.fromkeys([*before, *(name for name in now if name in before)]))[:MOST_FIELDS]
    rows = tuple(
        FieldRow(
            field=name,
            before=text.inert(before[name], 120),
            now=text.say(_("not known")) if unknown else text.inert(now.get(name, "—"), 120),
            changed=name in now and now[name] != before[name],
            unknown=unknown,
        )
        for name in names
    )
    return Diff(
        before_at=clock.time(action.prior_read_at), now_at=clock.time(read.at) if read else "", rows=rows
    )


def flat(value: Json, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The scalars of a JSON value with their dotted names."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from flat(part, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, list):
        yield prefix or "value", f"[{len(value)}]"
    else:
        yield prefix or "value", "—" if value is None else str(value)
