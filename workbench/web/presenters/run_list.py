"""The list of runs, newest first: all of them, those of a workflow, or those with a reference."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from sagas.facts import RunPage, RunRow
from workbench.web.presenters import words
from workbench.web.presenters.case import Link
from workbench.web.presenters.clock import Clock
from workbench.web.presenters.words import StateWord


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of the list."""

    ref: str
    url: str
    title: str
    workflow: str
    state: StateWord
    started: str
    business_ref: str
    handoff: Link | None


@dataclass(frozen=True, kw_only=True)
class Only:
    """Which runs are asked for: by a reference, by a workflow, by one version of it."""

    search: str = ""
    workflow: str = ""
    version: int | None = None

    @property
    def said(self) -> str:
        """The workflow as people write it, "" for all of them."""
        return f"{self.workflow} v{self.version}" if self.version else self.workflow


@dataclass(frozen=True, kw_only=True)
class RunList:
    """The list, newest first. `all_url` leads to the runs of all workflows."""

    rows: tuple[Row, ...]
    only: Only
    workflow_url: str
    all_url: str
    next_url: str
    first_url: str


def run_list(page: RunPage, *, only: Only, after: str, clock: Clock) -> RunList:
    """A page of runs."""
    return RunList(
        rows=tuple(_row(row, clock) for row in page.rows),
        only=only,
        workflow_url=reverse("workflow", args=[only.workflow]) if only.workflow else "",
        all_url=_address(Only(search=only.search)) if only.workflow else "",
        next_url=_address(only, page.after) if page.after else "",
        first_url=_address(only) if after else "",
    )


def _row(row: RunRow, clock: Clock) -> Row:
    ref = row.handoff_ref
    return Row(
        ref=row.ref,
        url=reverse("run", args=[row.ref]),
        title=row.title or row.workflow,
        workflow=f"{row.workflow} v{row.workflow_version}",
        state=words.RUN_STATES[row.state],
        started=clock.time(row.started_at),
        business_ref=row.business_ref,
        handoff=Link(ref=ref, url=reverse("case", args=[ref])) if ref else None,
    )


def _address(only: Only, after: str = "") -> str:
    asked = {"q": only.search, "workflow": only.workflow, "version": only.version, "after": after}
    said = urlencode({name: value for name, value in asked.items() if value})
    return f"{reverse('runs')}?{said}" if said else reverse("runs")
