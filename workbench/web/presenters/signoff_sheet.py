"""The sheet of one sign-off: what is signed, rendered from the permit's own document, and what speaks for and against.

Shows everything and cuts nothing (E-11); decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from sagas.facts import ActionFacts, ChangeSeen, ConditionCheck, PlannedCall, SignoffFacts, SignoffLook
from sagas.states import ActionState, PermitState
from tools import texts
from tools.contract import Json, Level
from workbench.commands import SignoffOffer, code_words
from workbench.errors import Refusal
from workbench.policies import note_needed, signoff_risk
from workbench.web.forms import Field, fields
from workbench.web.presenters import marks, steps, text, words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.queue import sentence_join
from workbench.web.presenters.signoffs import asker, left, title_of
from workbench.web.presenters.words import Words

WHOLE = 1_000_000
"""Characters of a body that are shown: what is signed is never cut (E-11)."""
_GROUP = 8
_TOOK_EFFECT = frozenset({ActionState.CONFIRMED, ActionState.PARTIAL, ActionState.UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class Changed:
    """One field as it was read just now and as it has to read afterwards."""

    record: SafeString
    field: SafeString
    now: SafeString
    after: SafeString
    known: bool


@dataclass(frozen=True, kw_only=True)
class Called:
    """The call exactly as it goes out, and what stops it."""

    tool: str
    line: SafeString
    body: SafeString | None
    key: SafeString
    about: SafeString
    stops: tuple[SafeString, ...]
    proof: SafeString | None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check beside the signature."""

    icon: str
    says: Words
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Signing or rejecting: allowed with its field, or the reason why not."""

    verb: str
    url: str
    label: Words
    key: str
    allowed: bool
    sentence: str
    field: Field
    open: bool = False

    @property
    def code_first(self) -> bool:
        """Whether the code of the reason is what is asked for first, and not the reason that needs fixing."""
        code = self.field.code
        return code is not None and (bool(code.error) or not self.field.error)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a request that is not open any more."""

    icon: str
    headline: str
    quote: SafeString | None
    code: Words
    then: str


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Everything that is shown to whoever is about to sign."""

    ref: str
    url: str
    title: str
    risk: marks.Risk
    run_ref: str
    case_ref: str
    about: tuple[str, ...]
    who: Words
    asked: str
    why: SafeString
    why_code: Words
    quoted: bool
    read_at: str
    changes: tuple[Changed, ...]
    unread: SafeString
    call: Called
    kind: Words
    stays: tuple[SafeString, ...]
    wrong: str
    digest: tuple[str, ...]
    document: SafeString
    version: int
    shown_at: str
    checks: tuple[Check, ...]
    sign: Form
    reject: Form
    outcome: Outcome | None
    newer_ref: str
    seen: str
    command_id: str
    reject_id: str
    password: Field | None
    """Asked for where the reader's login is not fresh enough to sign by."""


def sheet(
    signoff: SignoffFacts,
    *,
    call: PlannedCall,
    look: SignoffLook | None,
    offers: Iterable[SignoffOffer],
    may: Refusal | None,
    independent: Refusal | None,
    reader: str,
    clock: Clock,
    ids: tuple[str, str],
    draft: dict[str, dict[str, str]],
    errors: dict[str, dict[str, Words]],
    confirmed: bool,
) -> Sheet:
    """The sheet. `look` is what was read just now; `may` and `independent` are why the reader may not sign.

    `confirmed`: the reader has shown lately who they are.
    """
    run, permit, action = signoff.run, signoff.permit, signoff.action
    made_up = signoff.compensation
    risk = signoff_risk(signoff.level, run.amount)
    forms = {offer.verb: _form(offer, permit.ref, risk, draft, errors) for offer in offers}
    amount = f"{run.amount} {run.currency}".strip() if run.amount else ""
    return Sheet(
        ref=permit.ref,
        url=reverse("signoff", args=[permit.ref]),
        title=title_of(action.contract.texts.title, forward=signoff.forward),
        risk=marks.risk(risk),
        run_ref=run.ref,
        case_ref=run.handoff.ref if run.handoff else "",
        about=tuple(
            part
            for part in (
                f"{run.definition.name} v{run.definition.version}",
                run.business_ref,
                run.customer,
                amount,
            )
            if part
        ),
        who=asker(signoff.asked_by, signoff.asked_by_name, reader),
        asked=clock.time(permit.requested_at),
        why=text.inert(signoff.why.rstrip(": "), 2000),
        why_code=code_words(signoff.why_code),
        quoted=bool(signoff.asked_by),
        read_at=clock.time(look.changes[0].read_at) if look and look.changes else "",
        changes=tuple(changed(one) for one in look.changes) if look else (),
        unread=_effect(signoff),
        call=_called(signoff, call),
        kind=words.COMPENSATION_KINDS.get(made_up.kind if made_up else "", ""),
        stays=tuple(_stays(signoff)),
        wrong=_wrong_forward() if signoff.forward else _wrong(action),
        digest=grouped(permit.digest),
        document=text.as_json(permit.document, WHOLE),
        version=run.version,
        shown_at=clock.time(clock.now),
        checks=tuple(_checks(signoff, look, may, independent, forms["sign"], clock)),
        sign=forms["sign"],
        reject=forms["reject"],
        outcome=_outcome(signoff, reader, clock),
        newer_ref=signoff.newest if signoff.newest != permit.ref else "",
        seen=seen(signoff),
        command_id=ids[0],
        reject_id=ids[1],
        password=None if confirmed else _password(errors.get("sign", {})),
    )


def _password(wrong: dict[str, Words]) -> Field:
    return Field(
        name="password",
        label=_("Your password"),
        kind="password",
        help=_("Your last login was a while ago. A signature needs to know that it is you."),
        error=wrong.get("password", ""),
        autocomplete="current-password",
    )


def seen(signoff: SignoffFacts) -> str:
    """What a sheet shows, as one word to compare it by."""
    made_up = signoff.compensation
    late = signoff.permit.expires_at <= signoff.run.now
    freezes = "-".join(str(freeze.id) for freeze in signoff.run.freezes)
    parts = (signoff.permit.state, late, signoff.unchanged, made_up.state if made_up else "", freezes)
    return ".".join(str(part) for part in parts)


def url_of(signoff: SignoffFacts) -> str:
    """Where this sheet is read."""
    return reverse("signoff", args=[signoff.permit.ref])


def grouped(digest: str) -> tuple[str, ...]:
    """A digest in groups of eight, as people compare it."""
    return tuple(digest[start : start + _GROUP] for start in range(0, len(digest), _GROUP))


def changed(one: ChangeSeen) -> Changed:
    """A field as read just now, and as it has to read afterwards."""
    nothing = _("nothing there")
    now = text.inert(_("not known, no answer")) if not one.answered else _value(one.now, nothing)
    match one.operator:
        case "absent":
            after = text.inert(nothing)
        case "exists":
            after = text.inert(_("something there"))
        case _:
            after = _value(one.after, nothing)
    return Changed(
        record=text.inert(one.record, 200),
        field=text.inert(one.field, 100),
        now=now,
        after=after,
        known=one.answered,
    )


def _value(value: Json, nothing: str) -> SafeString:
    if value is None:
        return text.inert(nothing)
    return text.inert(value, WHOLE) if isinstance(value, str) else text.as_json(value, WHOLE)


def _effect(signoff: SignoffFacts) -> SafeString:
    """What the contract says of the effect, for tools that nothing can be read of."""
    made_up, action = signoff.compensation, signoff.action
    if made_up is None:
        said = action.contract.texts
        return text.inert(texts.fill(said.effect or said.title, args=action.args))
    said = made_up.contract.texts
    return text.inert(texts.fill(said.effect or said.title, args=made_up.args, result=made_up.result))


def _called(signoff: SignoffFacts, call: PlannedCall) -> Called:
    declared = None if signoff.forward else signoff.action.contract.compensation
    conditions = declared.preconditions if declared else ()
    verify = declared.verify if declared else None
    return Called(
        tool=call.tool,
        line=text.inert(call.line, 4000),
        body=None if call.body in (None, {}, "") else text.as_json(call.body, WHOLE),
        key=text.inert(call.key, 400),
        about=text.inert(call.text, 300),
        stops=tuple(text.say(_("only if {text}"), text=one.text) for one in conditions),
        proof=text.say(_("then read back: {text}"), text=verify.text) if verify else None,
    )


def _stays(signoff: SignoffFacts) -> Iterator[SafeString]:
    """What neither this call nor any other brings back."""
    declared, made_up = signoff.action.contract.compensation, signoff.compensation
    if signoff.forward:
        if signoff.action.contract.recovery_class == "irreversible":
            yield _effect(signoff)
        return
    if declared and declared.leaves:
        yield text.inert(declared.leaves, 300)
    if made_up is not None and made_up.contract.recovery_class == "irreversible":
        yield _effect(signoff)
    for action in steps.current(signoff.run):
        if action.contract.recovery_class == "irreversible" and action.state in _TOOK_EFFECT:
            doubt = action.state is ActionState.UNKNOWN
            said = _("Perhaps: {done}") if doubt else "{done}"
            yield text.say(said, done=texts.fill(action.contract.texts.done, args=action.args))


def _wrong_forward() -> str:
    return sentence_join(
        [
            _(
                "If the call is refused, the run does what its workflow says: it compensates or comes to people."
            ),
            _("If no answer comes, its outcome is unknown and is asked for."),
        ]
    )


def _wrong(action: ActionFacts) -> str:
    return sentence_join(
        [
            _("If a condition does not hold any more, nothing is sent."),
            _("If the call is refused, the compensation has failed."),
            _("If no answer comes, its outcome is unknown and is asked for."),
            _("Nothing further is compensated then, and the case comes to people."),
            _("Worst case, this stays in effect: {done}.").format(
                done=texts.fill(action.contract.texts.done, args=action.args, result=action.result).rstrip(
                    "."
                )
            ),
        ]
    )


def _checks(
    signoff: SignoffFacts,
    look: SignoffLook | None,
    may: Refusal | None,
    independent: Refusal | None,
    sign: Form,
    clock: Clock,
) -> Iterator[Check]:
    """The independence checks: those of the person, then those of the call."""
    if may is not None:
        yield Check(icon="bad", says=str(may.sentence))
    else:
        yield Check(icon="ok", says=_("You may sign: you are an approver"))
    if independent is not None:
        yield Check(icon="bad", says=str(independent.sentence))
    else:
        yield Check(icon="ok", says=_("You did not ask for this, and did not work on it"))
    if signoff.permit.state is not PermitState.REQUESTED:
        return
    now = clock.time(signoff.run.now)
    if signoff.unchanged:
        yield Check(icon="ok", says=_("The call is the very one that was asked for"), at=now)
    else:
        yield Check(icon="bad", says=_("The call has changed since it was asked"), at=now)
    yield from _preconditions(look.preconditions if look else (), clock)
    if not sign.allowed and signoff.run.freezes:
        yield Check(icon="held", says=sign.sentence)
    until = signoff.permit.expires_at
    if until <= clock.now:
        yield Check(icon="bad", says=_("Expired"), at=clock.time(until))
    else:
        yield Check(
            icon="wait",
            says=_("Expires in {left}").format(left=left(until, clock)),
            at=clock.time(until),
        )


def _preconditions(found: tuple[ConditionCheck, ...], clock: Clock) -> Iterator[Check]:
    if found and all(one.met for one in found):
        says = _("All conditions hold. They are read again right before the call")
        yield Check(icon="ok", says=says, at=clock.time(found[-1].read_at))
        return
    for one in found:
        if one.met is None:
            yield Check(
                icon="unk",
                says=text.say(_("Could not be read: {text}"), text=one.text),
                at=clock.time(one.read_at),
            )
        elif not one.met:
            says = text.say(_("Does not hold: {text} ({evidence})"), text=one.text, evidence=one.evidence)
            yield Check(icon="bad", says=says, at=clock.time(one.read_at))


def _form(
    offer: SignoffOffer,
    ref: str,
    risk: Level,
    draft: dict[str, dict[str, str]],
    errors: dict[str, dict[str, Words]],
) -> Form:
    wrong = errors.get(offer.verb, {})
    found = fields(offer.fields, draft=draft.get(offer.verb, {}), errors=wrong)
    field = next(one for one in found if one.name == "reason")
    __, word, ___ = words.LEVELS[risk]
    if offer.verb == "sign":
        needed = note_needed(risk)
        note = _("required, the risk is {risk}").format(risk=str(word).lower()) if needed else _("optional")
        field = replace(field, note=note, required=needed)
    else:
        placeholder = _("What has to be different, so that somebody can sign it?")
        field = replace(field, placeholder=placeholder)
    return Form(
        verb=offer.verb,
        url=reverse(f"signoff-{offer.verb}", args=[ref]),
        label=offer.label,
        key=offer.key,
        allowed=offer.allowed,
        sentence=str(offer.sentence or ""),
        field=field,
        open=bool(wrong),
    )


def _outcome(signoff: SignoffFacts, reader: str, clock: Clock) -> Outcome | None:
    permit, made_up = signoff.permit, signoff.compensation
    who, at = permit.decided_by_name, clock.time(permit.decided_at)
    if permit.decided_by and permit.decided_by == reader:
        who = _("You")
    quote = text.inert(permit.reason, 2000) if permit.reason else None
    code = code_words(permit.reason_code)
    state = words.COMPENSATION_STATES.get(str(made_up.state)) if made_up else None
    then = _("The compensation is now: {state}.").format(state=state.word) if state else ""
    match permit.state:
        case PermitState.GRANTED | PermitState.CONSUMED:
            headline = _("{who} signed at {at}.").format(who=who, at=at)
            return Outcome(icon="ok", headline=headline, quote=quote, code=code, then=then)
        case PermitState.REJECTED:
            headline = _("{who} rejected it at {at}. Nothing ran.").format(who=who, at=at)
            return Outcome(icon="bad", headline=headline, quote=quote, code=code, then="")
        case PermitState.WITHDRAWN:
            headline = _("This request is void. It was not used.")
            return Outcome(icon="skip", headline=headline, quote=None, code="", then="")
        case PermitState.EXPIRED:
            headline = _("Expired {at}. Nothing ran.").format(at=clock.time(permit.expires_at))
            return Outcome(icon="clock", headline=headline, quote=quote, code=code, then="")
        case _:
            return None
