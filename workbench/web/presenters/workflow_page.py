"""One version of a workflow: its steps in order, what the check finds, who let what pass, how its runs went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas.readings import CataloguePage, PublishedWorkflow, RunsLately, WorkflowVersion
from tools.contract import Contract
from tools.definition import Definition, Step
from tools.lint import Severity
from tools.lint.measures import measure
from tools.lint.recovery import in_order
from workbench.web.presenters import shares, words
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.lint_words import RULES
from workbench.web.presenters.shares import Figure, Share
from workbench.web.presenters.words import ClassWord, Words
from workbench.web.presenters.workflows import (
    Verdict,
    alike,
    figures,
    misplaced,
    recovery_of,
    runs_url,
    title_of,
    verdict,
)


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """A step in the order of calling: what it calls, how it is recovered from, when it goes out, who sees to it."""

    number: int
    id: str
    tool: str
    tool_url: str
    tool_version: int
    about: str
    recovery: ClassWord
    rules: tuple[str, ...]
    compensation: str
    compensation_url: str
    kind: Words
    who: Words


@dataclass(frozen=True, kw_only=True)
class Found:
    """A finding of the check. `message` is about this very place, in the check's own words (English)."""

    icon: str
    severity: Words
    code: str
    title: Words
    steps: str
    message: str
    harm: Words
    fix: Words
    fix_is_ours: bool
    waived_by: str
    waived_why: str


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version in the list of versions."""

    version: int
    url: str
    published: str
    by: str
    live: str
    live_url: str
    waived: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """The page of one version."""

    name: str
    version: int
    title: str
    published: str
    by: str
    digest: str
    team: str
    newest: int
    newest_url: str
    runs_url: str
    live: int
    steps: tuple[ShownStep, ...]
    verdict: Verdict
    findings: tuple[Found, ...]
    waived: int
    figures: tuple[Figure, ...]
    lately: RunsLately
    shares: tuple[Share, ...]
    counted: str
    ends: tuple[str, ...]
    versions: tuple[Version, ...]
    older_url: str


def workflow(
    one: PublishedWorkflow,
    versions: CataloguePage[WorkflowVersion],
    lately: RunsLately,
    *,
    clock: Clock,
) -> Workflow:
    """One version with everything known of it; the last seven days are those of all its versions."""
    definition = one.definition
    name, url = definition.name, reverse("workflow", args=[definition.name])
    return Workflow(
        name=name,
        version=definition.version,
        title=title_of(definition),
        published=clock.time(one.published_at),
        by=one.published_by,
        digest=definition.digest[:16],
        team=definition.team,
        newest=one.newest,
        newest_url="" if one.newest == definition.version else url,
        runs_url=runs_url(name),
        live=one.live,
        steps=tuple(
            _step(number, step, definition, one.contracts)
            for number, step in enumerate(in_order(definition), 1)
        ),
        verdict=verdict(one.findings, one.waivers),
        findings=tuple(sorted(_findings(one), key=lambda found: found.icon != "bad")),
        waived=len(one.waivers),
        figures=figures(measure(definition, one.contracts)),
        lately=lately,
        shares=_shares(lately),
        counted=shares.counted(lately.runs, capped=lately.capped),
        ends=tuple(end.title for end in definition.end_states),
        versions=tuple(_version(row, definition.version, clock) for row in versions.rows),
        older_url=f"?{urlencode({'below': versions.after})}" if versions.after else "",
    )


def _step(number: int, step: Step, definition: Definition, contracts: Mapping[str, Contract]) -> ShownStep:
    contract = contracts.get(step.tool)
    made_up = contract.compensation if contract else None
    return ShownStep(
        number=number,
        id=step.id,
        tool=step.tool,
        tool_url=reverse("tool-version", args=[step.tool, step.contract_version]),
        tool_version=step.contract_version,
        about=contract.texts.title if contract else "",
        recovery=recovery_of(contract),
        rules=tuple(_rules(step, definition, contracts)),
        compensation=made_up.tool if made_up else "",
        compensation_url=reverse("tool", args=[made_up.tool]) if made_up else "",
        kind=words.COMPENSATION_KINDS[str(made_up.kind)] if made_up else "",
        who=_who(contract),
    )


def _rules(step: Step, definition: Definition, contracts: Mapping[str, Contract]) -> Iterable[str]:
    """When the step goes out, and what its refusal leads to."""
    if step.held:
        yield _("held back until every other step is confirmed")
    if step.each is not None:
        yield _("once for every element of a list, one after another")
    if misplaced(definition, step, contracts):
        yield _("irreversible, and outside the last third")
    yield str(words.ON_FAILURE[str(step.on_rejected or definition.on_failure)])


def _who(contract: Contract | None) -> Words:
    """Who sees to the effect when it may not stay."""
    if contract is None or not contract.has_effect:
        return ""
    if contract.compensation is not None:
        return words.WHO[str(contract.compensation.who)]
    if contract.escalation.to:
        return _("a person: {team}").format(team=contract.escalation.to)
    return _("nobody is named")


def _findings(one: PublishedWorkflow) -> Iterable[Found]:
    waived = {waiver.code: waiver for waiver in one.waivers}
    english = (get_language() or "en").startswith("en")
    for finding, at in alike(one.findings).items():
        rule, let_pass = RULES[finding.code], waived.get(finding.code)
        error = finding.severity is Severity.ERROR
        own_fix = finding.fix == finding.rule.fix
        yield Found(
            icon="bad" if error and not let_pass else "kept" if let_pass else "warn",
            severity=_("Error") if error and not let_pass else _("Waived") if let_pass else _("Warning"),
            code=finding.code,
            title=rule.title,
            steps=", ".join(step for step in at if step),
            message=finding.message,
            harm=rule.harm,
            fix=rule.fix if own_fix and not english else finding.fix,
            fix_is_ours=own_fix or english,
            waived_by=let_pass.by_name if let_pass else "",
            waived_why=let_pass.reason if let_pass else "",
        )


def _shares(lately: RunsLately) -> tuple[Share, ...]:
    ends = (
        ("completed", "ok", lately.completed),
        ("compensated", "cmp", lately.compensated),
        ("failed_clean", "bad", lately.failed_clean),
        ("closed_accepted", "wait", lately.accepted),
    )
    found = [
        shares.share(words.RUN_STATES[state].word, number, lately.runs, tone=tone)
        for state, tone, number in ends
        if number or state == "completed"
    ]
    if lately.live:
        found.append(shares.share(_("Not ended yet"), lately.live, lately.runs, tone="run"))
    return tuple(found)


def _version(row: WorkflowVersion, shown: int, clock: Clock) -> Version:
    return Version(
        version=row.version,
        url=reverse("workflow-version", args=[row.name, row.version]),
        published=clock.short(row.published_at),
        by=row.published_by,
        live=shares.number(row.live),
        live_url=runs_url(row.name, row.version) if row.live else "",
        waived=ngettext("{n} waived", "{n} waived", row.waived).format(n=row.waived) if row.waived else "",
        current=row.version == shown,
    )
