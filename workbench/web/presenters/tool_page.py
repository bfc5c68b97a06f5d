"""One version of a tool's contract: the ten questions, the rules in words, its calls lately, who uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import FreezeFacts, GateFacts
from sagas.readings import CallsLately, CataloguePage, PublishedTool, ToolUser, ToolVersion
from tools.contract import Contract, HttpCall
from tools.lint import Answer, Mark, readiness
from workbench.web.presenters import marks, readiness_words, shares, steps, text, words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.gates import gate_words
from workbench.web.presenters.shares import Share
from workbench.web.presenters.shell import freeze_what
from workbench.web.presenters.steps import Line
from workbench.web.presenters.tools import (
    Readiness,
    frozen_by,
    key_words,
    readiness_of,
)
from workbench.web.presenters.words import ClassWord, Words

MOST_FIELDS = 12


@dataclass(frozen=True, kw_only=True)
class Question:
    """One of the ten questions with the contract's answer and how good it is."""

    icon: str
    mark: Words
    question: Words
    answer: SafeString


@dataclass(frozen=True, kw_only=True)
class UsedBy:
    """A workflow whose newest version needs the tool, and in which steps it calls it."""

    name: str
    version: int
    url: str
    how: str


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version in the list of versions."""

    version: int
    url: str
    published: str
    by: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Tool:
    """The page of one version."""

    name: str
    version: int
    title: str
    system: str
    recovery: ClassWord
    risk: marks.Risk
    confirmed_first: bool
    published: str
    by: str
    digest: str
    newest: int
    newest_url: str
    used: str
    readiness: Readiness
    questions: tuple[Question, ...]
    rules: tuple[Line, ...]
    sends: tuple[Line, ...]
    returns: tuple[Line, ...]
    retries: tuple[Line, ...]
    calls: str
    shares: tuple[Share, ...]
    numbers: tuple[Line, ...]
    frozen: tuple[str, ...]
    gate: str
    paused: bool
    freeze_url: str
    users: tuple[UsedBy, ...]
    more_users: int
    versions: tuple[Version, ...]
    older_url: str


def tool(
    one: PublishedTool,
    versions: CataloguePage[ToolVersion],
    users: Iterable[ToolUser],
    lately: CallsLately,
    *,
    freezes: Iterable[FreezeFacts],
    clock: Clock,
    gate: GateFacts | None = None,
) -> Tool:
    """One version with everything known of it; the last seven days are those of all its versions."""
    contract = one.contract
    name, listed = contract.tool, tuple(users)
    return Tool(
        name=name,
        version=contract.version,
        title=contract.texts.title,
        system=contract.system,
        recovery=marks.recovery_of(contract),
        risk=marks.risk(str(contract.level)),
        confirmed_first=contract.require_confirmation,
        published=clock.time(one.published_at),
        by=one.published_by,
        digest=contract.digest[:16],
        newest=one.newest,
        newest_url="" if one.newest == contract.version else reverse("tool", args=[name]),
        used=ngettext("used by {n} workflow", "used by {n} workflows", one.workflows).format(n=one.workflows),
        readiness=readiness_of(contract),
        questions=tuple(_question(answer) for answer in readiness(contract)),
        rules=tuple(_rules(contract)),
        sends=tuple(_sends(contract)),
        returns=tuple(_returns(contract)),
        retries=tuple(_retries(contract)),
        calls=shares.counted(lately.calls, capped=lately.capped),
        shares=_shares(lately),
        numbers=tuple(_numbers(lately)),
        frozen=tuple(freeze_what(freeze) for freeze in frozen_by(name, freezes)),
        gate=gate_words(gate, clock) if gate else "",
        paused=gate is not None and gate.paused_at is not None,
        freeze_url=f"{reverse('freeze')}?{urlencode({'applies_to': f'tool:{name}'})}",
        users=tuple(_user(user) for user in listed),
        more_users=max(one.workflows - len(listed), 0),
        versions=tuple(_version(name, row, contract.version, clock) for row in versions.rows),
        older_url=f"?{urlencode({'below': versions.after})}" if versions.after else "",
    )


def _question(answer: Answer) -> Question:
    looks = {
        Mark.ANSWERED: ("ok", _("answered")),
        Mark.WEAK: ("warn", _("answered weakly")),
        Mark.OPEN: ("bad", _("not answered")),
    }
    icon, mark = looks[answer.mark]
    return Question(
        icon=icon,
        mark=mark,
        question=readiness_words.QUESTIONS[answer.number - 1],
        answer=text.say(_(answer.template), **_parts(answer)),
    )


def _parts(answer: Answer) -> dict[str, str]:
    """The parts of an answer, those that are words of ours in the reader's language."""
    known = {
        "kind": {**readiness_words.EFFECT_KINDS, **words.COMPENSATION_KINDS},
        "recovery": {name: one.word for name, one in words.CLASSES.items()},
    }
    return {name: str(known.get(name, {}).get(part, part)) for name, part in answer.parts.items()}


def _rules(contract: Contract) -> Iterator[Line]:
    """The contract's rules, one a line."""
    yield Line(label=_("Effect"), value=text.inert(readiness_words.EFFECT_KINDS[str(contract.effect_kind)]))
    if contract.texts.effect:
        yield Line(label=_("In words"), value=text.inert(contract.texts.effect, 200))
    yield Line(label=_("Our key"), value=_key(contract))
    yield Line(label=_("Status query"), value=_status_query(contract))
    prior = contract.prior_state
    if prior is not None:
        said = _("read by {tool}, at most {s} s before the call")
        yield Line(label=_("State before"), value=text.say(said, tool=prior.tool, s=f"{prior.max_age_s:g}"))
    if contract.has_effect:
        yield Line(label=_("Dry run"), value=_dry_run(contract))
        yield Line(label=_("Compensation"), value=_compensation(contract))
    if contract.escalation.to:
        yield Line(label=_("Goes to"), value=text.inert(contract.escalation.to, 200))
    if contract.escalation.when:
        yield Line(label=_("When"), value=text.inert(contract.escalation.when, 300))
    limits = _("answer within {s} s, at most {n} bytes")
    yield Line(
        label=_("Limits"),
        value=text.say(limits, s=f"{contract.limits.total_s:g}", n=shares.number(contract.limits.body_bytes)),
    )
    if contract.secret_fields:
        yield Line(label=_("Secret fields"), value=text.inert(", ".join(contract.secret_fields), 200))


def _key(contract: Contract) -> SafeString:
    support = text.inert(key_words(contract))
    kept = contract.idempotency.retention_s
    if not kept:
        return support
    return text.say(_("{support}, kept for {h} h"), support=str(key_words(contract)), h=f"{kept / 3600:g}")


def _status_query(contract: Contract) -> SafeString:
    query = contract.status_query
    if query is None:
        return text.say(_("none")) if contract.has_effect else text.say(_("not needed, it only reads"))
    if query.authoritative:
        said = _("{tool}; “not found” counts {s} s after the call’s own limit")
        return text.say(said, tool=query.tool, s=f"{query.settle_s:g}")
    return text.say(_("{tool}; “not found” proves nothing"), tool=query.tool)


def _dry_run(contract: Contract) -> SafeString:
    if contract.dry_run is None:
        return text.say(_("not offered"))
    return text.say(_("{tool}: the call is tried, nothing of it is kept"), tool=contract.dry_run.tool)


def _compensation(contract: Contract) -> SafeString:
    made_up = contract.compensation
    if made_up is None:
        return text.say(_("none"))
    kind, who = words.COMPENSATION_KINDS[str(made_up.kind)], words.WHO[str(made_up.who)]
    return text.say(_("{tool}: {kind}; {who}"), tool=made_up.tool, kind=str(kind), who=str(who))


def _sends(contract: Contract) -> Iterator[Line]:
    """What goes out."""
    call = contract.call
    if isinstance(call, HttpCall):
        yield Line(label=_("Call"), value=text.inert(f"{call.method} {call.path}", 200), mono=True)
    else:
        yield Line(label=_("Call"), value=text.inert(call.target, 200), mono=True)
    if contract.has_effect:
        yield Line(label=_("Our key"), value=text.inert(contract.idempotency.header, 100), mono=True)
    yield Line(label=_("Arguments"), value=_fields(contract.args_schema), mono=True)
    if contract.items is not None:
        yield Line(label=_("At once"), value=text.say(_("{n} items at most"), n=contract.items.most))


def _returns(contract: Contract) -> Iterator[Line]:
    """What comes back, and what it means."""
    shape = _fields(contract.result_schema) if contract.result_schema else text.say(_("not described"))
    yield Line(label=_("Result"), value=shape, mono=bool(contract.result_schema))
    if contract.reference:
        yield Line(label=_("Reference"), value=text.inert(contract.reference, 100), mono=True)
    meanings = ", ".join(f"{status} {meaning}" for status, meaning in sorted(contract.statuses.items()))
    if meanings:
        yield Line(label=_("Statuses"), value=text.inert(meanings, 400), mono=True)
    if contract.callback is not None:
        yield Line(label=_("Call back"), value=text.say(_("the answer may come by itself, signed")))


def _fields(schema: object) -> SafeString:
    """The names at the top of a JSON schema, the needed ones first; needed ones carry a star."""
    if not isinstance(schema, dict):
        return text.say(_("not described"))
    needed = set(schema.get("required", ()))
    names = sorted(schema.get("properties", {}), key=lambda name: (name not in needed, name))
    shown = ", ".join(f"{name}*" if name in needed else name for name in names[:MOST_FIELDS])
    return text.inert(f"{shown}, …" if len(names) > MOST_FIELDS else shown or _("none"), 400)


def _retries(contract: Contract) -> Iterator[Line]:
    """How often each kind of failure is tried again."""
    for name, rule in contract.retry.items():
        if rule.max_attempts > 1:
            tries = ngettext("{n} call at most", "{n} calls at most", rule.max_attempts)
            said = tries.format(n=rule.max_attempts)
            yield Line(label=steps.error_words(str(name)), value=text.inert(said))


def _shares(lately: CallsLately) -> tuple[Share, ...]:
    if not lately.calls:
        return ()
    return (
        shares.share(_("Confirmed"), lately.confirmed, lately.calls, tone="ok"),
        shares.share(_("Rejected"), lately.rejected, lately.calls, tone="bad"),
        shares.share(_("Unknown at first"), lately.unknown, lately.calls, tone="unk"),
    )


def _numbers(lately: CallsLately) -> Iterator[Line]:
    mean = shares.milliseconds(lately.mean_ms)
    yield Line(label=_("Mean answer time"), value=text.inert(mean or _("nothing answered")))
    found = _("{n} of {all}").format(n=shares.number(lately.found), all=shares.number(lately.unknown))
    yield Line(label=_("Unknown, found by query"), value=text.inert(found))
    yield Line(label=_("Sent again, same key"), value=text.inert(shares.number(lately.again)))
    yield Line(label=_("Handed to people"), value=text.inert(shares.number(lately.handed_over)))
    yield Line(label=_("Told to slow down (429)"), value=text.inert(shares.number(lately.throttled)))


def _user(user: ToolUser) -> UsedBy:
    listed = ", ".join(user.steps)
    return UsedBy(
        name=user.name,
        version=user.version,
        url=reverse("workflow", args=[user.name]),
        how=_("step {steps}").format(steps=listed)
        if listed
        else _("asked or called by another tool’s contract"),
    )


def _version(name: str, row: ToolVersion, shown: int, clock: Clock) -> Version:
    return Version(
        version=row.version,
        url=reverse("tool-version", args=[name, row.version]),
        published=clock.short(row.published_at),
        by=row.published_by,
        current=row.version == shown,
    )
