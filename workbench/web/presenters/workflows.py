"""The list of workflows with the three numbers they are held to, and what one workflow's own page shares with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from sagas.facts import WaiverFacts
from sagas.readings import CataloguePage, PublishedWorkflow, RunsLately
from tools.contract import Contract, RecoveryClass
from tools.definition import Definition, Step
from tools.lint import Finding, Severity
from tools.lint.measures import NOTHING, Measures, measure
from tools.lint.recovery import in_order, outside_last_third
from workbench.web.presenters import marks, shares, words
from workbench.web.presenters.shares import Figure
from workbench.web.presenters.words import ClassWord

WANTED = 80
"""The share of steps, in percent, that are to be compensable or safe to repeat (S2-13)."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the check comes to, in a mark and a few words."""

    icon: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workflow of the list, in its newest version."""

    name: str
    version: int
    url: str
    title: str
    size: str
    shape: marks.Strip | None
    classes: str
    recoverable: str
    below: bool
    verdict: Verdict
    lately: str
    ended: str
    live: int
    runs_url: str


@dataclass(frozen=True, kw_only=True)
class WorkflowList:
    """A page of workflows by name."""

    rows: tuple[Row, ...]
    summary: str
    figures: tuple[Figure, ...]
    next_url: str
    first_url: str


def workflow_list(
    page: CataloguePage[PublishedWorkflow], lately: Mapping[str, RunsLately], *, after: str
) -> WorkflowList:
    """A page of workflows; the figures on top are those of the workflows shown."""
    base = reverse("workflows")
    measured = [measure(one.definition, one.contracts) for one in page.rows]
    return WorkflowList(
        rows=tuple(
            _row(one, numbers, lately.get(one.definition.name, RunsLately()))
            for one, numbers in zip(page.rows, measured, strict=True)
        ),
        summary=ngettext("{n} workflow.", "{n} workflows.", len(page.rows)).format(n=len(page.rows))
        if not (after or page.after)
        else _("By name, {n} on this page.").format(n=len(page.rows)),
        figures=figures(sum(measured, NOTHING)),
        next_url=f"{base}?{urlencode({'after': page.after})}" if page.after else "",
        first_url=base if after else "",
    )


def figures(numbers: Measures) -> tuple[Figure, ...]:
    """The three numbers that every workflow is held to."""
    share = shares.percent(numbers.recoverable, numbers.steps)
    of_all = _("{n} of {all}")
    target = _("target all")
    return (
        Figure(
            name=_("Steps that are compensable or safe to repeat"),
            value=_("{n} %").format(n=share) if numbers.steps else "–",
            target=_("target {n} %").format(n=WANTED),
            off=bool(numbers.steps) and share < WANTED,
        ),
        Figure(
            name=_("Irreversible steps in the last third"),
            value=of_all.format(n=numbers.late, all=numbers.irreversible),
            target=target,
            off=numbers.late < numbers.irreversible,
        ),
        Figure(
            name=_("Effects with a compensation or a person who takes over"),
            value=of_all.format(n=numbers.covered, all=numbers.effects),
            target=target,
            off=numbers.covered < numbers.effects,
        ),
    )


def _row(one: PublishedWorkflow, numbers: Measures, lately: RunsLately) -> Row:
    definition = one.definition
    share = shares.percent(numbers.recoverable, numbers.steps)
    return Row(
        name=definition.name,
        version=definition.version,
        url=reverse("workflow", args=[definition.name]),
        title=title_of(definition),
        size=ngettext("{n} step", "{n} steps", numbers.steps).format(n=numbers.steps),
        shape=_shape(definition, one.contracts),
        classes=_classes(definition, one.contracts),
        recoverable=_("{n} %").format(n=share),
        below=share < WANTED,
        verdict=verdict(one.findings, one.waivers),
        lately=shares.counted(lately.runs, capped=lately.capped) if lately.runs else "",
        ended=_ended(lately),
        live=one.live,
        runs_url=runs_url(definition.name),
    )


def title_of(definition: Definition) -> str:
    """A workflow's title in the reader's language where it has one."""
    language = (get_language() or "en").lower()
    told = {code.lower(): title for code, title in definition.titles.items()}
    return told.get(language) or told.get(language.partition("-")[0]) or definition.title


def _ended(lately: RunsLately) -> str:
    """The ends that occurred, the good one first, as shares."""
    told = (
        (_("{n} % completed"), lately.completed),
        (_("{n} % compensated"), lately.compensated),
        (_("{n} % with people"), lately.handed_over),
    )
    return _(", ").join(text.format(n=shares.percent(number, lately.runs)) for text, number in told if number)


def _shape(definition: Definition, contracts: Mapping[str, Contract]) -> marks.Strip | None:
    """The steps as a strip without states; None where there are more than one shows."""
    steps = in_order(definition)
    if len(steps) > marks.LONGEST_STRIP:
        return None
    shown = []
    for number, step in enumerate(steps, 1):
        recovery, off = recovery_of(contracts.get(step.tool)), misplaced(definition, step, contracts)
        says = _("{n}. {tool}: {recovery}").format(n=number, tool=step.tool, recovery=recovery.word)
        if off:
            says = _("{step}, outside the last third").format(step=says)
        shown.append(marks.Mark(icon="bad" if off else "dot", bar=recovery.bar, says=says))
    count = ngettext("{n} step", "{n} steps", len(steps)).format(n=len(steps))
    return marks.Strip(says=count, marks=tuple(shown))


def _classes(definition: Definition, contracts: Mapping[str, Contract]) -> str:
    """How many steps are of which recovery class, in the order of their first step."""
    sums = Counter(str(recovery_of(contracts.get(step.tool)).word) for step in in_order(definition))
    return _(", ").join(_("{n} {word}").format(n=number, word=word.lower()) for word, number in sums.items())


def misplaced(definition: Definition, step: Step, contracts: Mapping[str, Contract]) -> bool:
    """Whether an irreversible step stands before the last third."""
    contract = contracts.get(step.tool)
    irreversible = contract is not None and contract.recovery_class is RecoveryClass.IRREVERSIBLE
    return irreversible and outside_last_third(definition, step)


def recovery_of(contract: Contract | None) -> ClassWord:
    """A step's recovery class, also where its tool is not published."""
    return marks.recovery_of(contract) if contract is not None else words.recovery("unknown tool")


def alike(findings: Iterable[Finding]) -> dict[Finding, list[str]]:
    """What is found at several steps in the same words, once, with those steps."""
    found: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    for finding in findings:
        __, steps = found.setdefault((finding.code, finding.message), (finding, []))
        steps.append(finding.step)
    return dict(found.values())


def verdict(findings: Iterable[Finding], waivers: Iterable[WaiverFacts]) -> Verdict:
    """Errors, waived errors and warnings in one line; what is found at several steps alike counts once."""
    let_pass = {one.code for one in waivers}
    sums = {"errors": 0, "waived": 0, "warnings": 0}
    for finding in alike(findings):
        error = finding.severity is Severity.ERROR
        sums["waived" if error and finding.code in let_pass else "errors" if error else "warnings"] += 1
    parts = (
        (ngettext("{n} error", "{n} errors", sums["errors"]), sums["errors"]),
        (ngettext("{n} waived", "{n} waived", sums["waived"]), sums["waived"]),
        (ngettext("{n} warning", "{n} warnings", sums["warnings"]), sums["warnings"]),
    )
    said = _(", ").join(text.format(n=number) for text, number in parts if number)
    icon = "bad" if sums["errors"] else "warn" if said else "ok"
    return Verdict(icon=icon, text=said or _("clean"))


def runs_url(name: str, version: int | None = None) -> str:
    """The runs of a workflow, or of one version of it."""
    asked = {"workflow": name, **({"version": version} if version else {})}
    return f"{reverse('runs')}?{urlencode(asked)}"
