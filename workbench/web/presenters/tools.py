"""The list of tools: what each call leaves in the world, how ready its contract is, how its calls went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sagas.facts import FreezeFacts
from sagas.readings import CallsLately, CataloguePage, PublishedTool
from tools.contract import Contract
from tools.lint import Mark, readiness
from tools.lint.readiness import TOO_MANY_OPEN
from workbench.web.presenters import marks, shares, words
from workbench.web.presenters.words import ClassWord, Words


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """How many of the ten questions are answered, how well, and what follows from it."""

    icon: str
    answered: int
    open: int
    all: int
    automatic: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One tool of the list, under its newest contract."""

    name: str
    version: int
    url: str
    title: str
    system: str
    recovery: ClassWord
    key: Words
    readiness: Readiness
    calls: str
    went: str
    mean: str
    workflows: int
    frozen: bool
    paused: bool


@dataclass(frozen=True, kw_only=True)
class ToolList:
    """A page of tools by name."""

    rows: tuple[Row, ...]
    summary: str
    next_url: str
    first_url: str


def tool_list(
    page: CataloguePage[PublishedTool],
    lately: Mapping[str, CallsLately],
    *,
    freezes: Iterable[FreezeFacts],
    paused: Collection[str] = (),
    after: str,
) -> ToolList:
    """A page of tools."""
    base, in_force = reverse("tools"), tuple(freezes)
    whole = not (after or page.after)
    count = ngettext("{n} tool.", "{n} tools.", len(page.rows)).format(n=len(page.rows))
    return ToolList(
        rows=tuple(
            _row(one, lately.get(one.contract.tool, CallsLately()), in_force, paused) for one in page.rows
        ),
        summary=count if whole else _("By name, {n} on this page.").format(n=len(page.rows)),
        next_url=f"{base}?{urlencode({'after': page.after})}" if page.after else "",
        first_url=base if after else "",
    )


def _row(
    one: PublishedTool, lately: CallsLately, freezes: tuple[FreezeFacts, ...], paused: Collection[str]
) -> Row:
    contract = one.contract
    return Row(
        name=contract.tool,
        version=contract.version,
        url=reverse("tool", args=[contract.tool]),
        title=contract.texts.title,
        system=contract.system,
        recovery=marks.recovery_of(contract),
        key=key_words(contract),
        readiness=readiness_of(contract),
        calls=shares.counted(lately.calls, capped=lately.capped) if lately.calls else "",
        went=_went(lately),
        mean=shares.milliseconds(lately.mean_ms),
        workflows=one.workflows,
        frozen=bool(frozen_by(contract.tool, freezes)),
        paused=contract.tool in paused,
    )


def readiness_of(contract: Contract) -> Readiness:
    """The ten questions as one mark: three or more open ones are too many for automatic use (S1-24)."""
    answers = readiness(contract)
    left_open = sum(answer.mark is Mark.OPEN for answer in answers)
    weak = sum(answer.mark is Mark.WEAK for answer in answers)
    automatic = left_open < TOO_MANY_OPEN
    return Readiness(
        icon="bad" if not automatic else "warn" if left_open or weak else "ok",
        answered=len(answers) - left_open,
        open=left_open,
        all=len(answers),
        automatic=automatic,
    )


def key_words(contract: Contract) -> Words:
    """What becomes of our key."""
    if not contract.has_effect:
        return "–"
    if contract.idempotency.natural:
        return _("the same call again changes nothing")
    return words.KEY_SUPPORT[str(contract.idempotency.support)]


def frozen_by(tool: str, freezes: Iterable[FreezeFacts]) -> tuple[FreezeFacts, ...]:
    """The freezes that name this tool, or everything."""
    return tuple(one for one in freezes if one.applies_to in ("all", f"tool:{tool}"))


def _went(lately: CallsLately) -> str:
    """What the calls came to, as far as it occurred, as shares."""
    told = (
        (_("{n} % confirmed"), lately.confirmed),
        (_("{n} % rejected"), lately.rejected),
        (_("{n} % unknown"), lately.unknown),
        (_("{n} % told to slow down"), lately.throttled),
    )
    return _(", ").join(
        text.format(n=shares.percent(number, lately.calls)) for text, number in told if number
    )
