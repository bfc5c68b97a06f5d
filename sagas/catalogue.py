"""What is published, as screens list it: workflows and tools, the newest version in front. Reads only.

Lists page by name, versions by number. How runs and calls went lately is `sagas.lately`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import Count, QuerySet

from sagas.errors import NotFound
from sagas.models import ContractVersion, DefinitionVersion, Run
from sagas.published import contract_by_id, definition_by_id, find_definition, waived_in
from sagas.readings import (
    CataloguePage,
    PublishedTool,
    PublishedWorkflow,
    ToolUser,
    ToolVersion,
    WorkflowVersion,
)
from tools import lint
from tools.contract import Contract
from tools.definition import Definition

MOST_USERS = 50
"""So many workflows that use a tool are named; a screen says that there are more."""


# --- Workflows --------------------------------------------------------------------------------------------------


def workflows(*, after: str = "", limit: int = 50) -> CataloguePage[PublishedWorkflow]:
    """The workflows by name, each in its newest version."""
    newest = DefinitionVersion.objects.exclude(name=None).order_by("name", "-version").distinct("name")
    found = list(newest.filter(name__gt=after)[: limit + 1])
    page = found[:limit]
    live = _live_by_name([str(row.name) for row in page])
    return CataloguePage(
        rows=tuple(_workflow(row, newest=row.version, live=live.get(str(row.name), 0)) for row in page),
        after=str(page[-1].name) if len(found) > limit else "",
    )


def workflow(name: str, version: int | None = None) -> PublishedWorkflow:
    """A workflow, the newest version unless one is named. Raises `NotFound`."""
    row = find_definition(name, version)
    newest = row.version if version is None else find_definition(name, None).version
    return _workflow(row, newest=newest, live=_live_by_name([name]).get(name, 0))


def workflow_versions(
    name: str, *, below: int | None = None, limit: int = 20
) -> CataloguePage[WorkflowVersion]:
    """The versions of a workflow, newest first, those below a number only where one is given."""
    rows = DefinitionVersion.objects.filter(name=name).order_by("-version")
    found = list((rows.filter(version__lt=below) if below else rows)[: limit + 1])
    page = found[:limit]
    live = dict(
        Run.objects.filter(finished_at=None, definition__in=[row.pk for row in page])
        .values_list("definition")
        .annotate(n=Count("pk"))
    )
    return CataloguePage(
        rows=tuple(
            WorkflowVersion(
                name=name,
                version=row.version,
                digest=row.digest,
                published_at=row.published_at,
                published_by=row.published_by,
                live=live.get(row.pk, 0),
                waived=len(row.waivers),
            )
            for row in page
        ),
        after=str(page[-1].version) if len(found) > limit else "",
    )


def _workflow(row: DefinitionVersion, *, newest: int, live: int) -> PublishedWorkflow:
    definition, contracts, findings = _checked(row.pk)
    return PublishedWorkflow(
        definition=definition,
        contracts=contracts,
        findings=findings,
        waivers=waived_in(row),
        published_at=row.published_at,
        published_by=row.published_by,
        newest=newest,
        live=live,
    )


@lru_cache(maxsize=256)
def _checked(pk: int) -> tuple[Definition, Mapping[str, Contract], tuple[lint.Finding, ...]]:
    """A published version with its check; cached, because neither it nor the contracts it pins ever change."""
    definition = definition_by_id(pk)
    pins: Mapping[str, Any] = DefinitionVersion.objects.values_list("pins", flat=True).get(pk=pk)
    contracts = {tool: contract_by_id(int(pin["id"])) for tool, pin in pins.items()}
    return definition, contracts, lint.check(definition, contracts)


def forget() -> None:
    """Empty the cache of checks."""
    _checked.cache_clear()


def _live_by_name(names: Sequence[str]) -> dict[str, int]:
    return dict(
        Run.objects.filter(finished_at=None, definition__name__in=names)
        .values_list("definition__name")
        .annotate(n=Count("pk"))
    )


# --- Tools ------------------------------------------------------------------------------------------------------


def tools(*, after: str = "", limit: int = 50) -> CataloguePage[PublishedTool]:
    """The tools by name, each with its newest contract."""
    newest = ContractVersion.objects.order_by("tool", "-version").distinct("tool")
    found = list(newest.filter(tool__gt=after).defer("document")[: limit + 1])
    page = found[:limit]
    users = _user_counts([row.tool for row in page])
    return CataloguePage(
        rows=tuple(_tool(row, newest=row.version, users=users.get(row.tool, 0)) for row in page),
        after=page[-1].tool if len(found) > limit else "",
    )


def tool(name: str, version: int | None = None) -> PublishedTool:
    """A tool, under its newest contract unless a version is named. Raises `NotFound`."""
    rows = _versions(name)
    row = (rows.filter(version=version) if version else rows).first()
    if row is None:
        raise NotFound("published contract", f"{name} v{version}" if version else name)
    newest = rows.values_list("version", flat=True)[0]
    return _tool(row, newest=newest, users=_user_counts([name]).get(name, 0))


def tool_versions(name: str, *, below: int | None = None, limit: int = 20) -> CataloguePage[ToolVersion]:
    """The versions of a tool's contract, newest first, those below a number only where one is given."""
    rows = _versions(name)
    found = list((rows.filter(version__lt=below) if below else rows)[: limit + 1])
    page = found[:limit]
    return CataloguePage(
        rows=tuple(
            ToolVersion(
                version=row.version,
                digest=row.digest,
                published_at=row.published_at,
                published_by=row.published_by,
            )
            for row in page
        ),
        after=str(page[-1].version) if len(found) > limit else "",
    )


def users_of(name: str) -> tuple[ToolUser, ...]:
    """The workflows whose newest version needs a tool, by name, `MOST_USERS` at most."""
    newest = DefinitionVersion.objects.exclude(name=None).order_by("name", "-version").distinct("name")
    rows = DefinitionVersion.objects.filter(pk__in=newest.values("pk"), pins__has_key=name).order_by("name")
    return tuple(
        ToolUser(
            name=str(row.name),
            version=row.version,
            steps=tuple(step.id for step in definition_by_id(row.pk).steps if step.tool == name),
        )
        for row in rows.only("name", "version")[:MOST_USERS]
    )


def _versions(name: str) -> QuerySet[ContractVersion]:
    return ContractVersion.objects.filter(tool=name).order_by("-version").defer("document")


def _tool(row: ContractVersion, *, newest: int, users: int) -> PublishedTool:
    return PublishedTool(
        contract=contract_by_id(row.pk),
        published_at=row.published_at,
        published_by=row.published_by,
        newest=newest,
        workflows=users,
    )


def _user_counts(names: Sequence[str]) -> dict[str, int]:
    """How many workflows need each tool in their newest version, by one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pin, count(*) FROM (SELECT DISTINCT ON (name) pins FROM sagas_definitionversion "
            "WHERE name IS NOT NULL ORDER BY name, version DESC) newest, jsonb_object_keys(newest.pins) pin "
            "WHERE pin = ANY(%s) GROUP BY pin",
            [list(names)],
        )
        return dict(cursor.fetchall())
