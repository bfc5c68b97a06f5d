"""Taking a version out of use: which live runs still need it, and what becomes of them.

A published version never disappears: runs go on by what they pin. Retired = nothing new begins with it; withdrawn = no
call goes out under it any more, and a run that comes to it is handed to a person. Starts and calls are kept out by the
freeze's lock, so that nothing slips in between the look and the commit.
"""

from __future__ import annotations

from django.db import connection

from sagas import entries
from sagas.entries import EntryRow
from sagas.errors import NotFound, StillNeeded
from sagas.facts import Actor, Need, RetirementFacts
from sagas.ledger import approvals
from sagas.models import ContractVersion, DefinitionVersion, Retirement
from sagas.published import contract_by_id
from sagas.reach import CONTRACT, WORKFLOW, in_force, unknown_here
from sagas.tx import durable, lock_freeze
from tools.contract import Json

_MOST_SHOWN = 1000

_NEEDS = """
SELECT r.ref, r.state, d.name, d.version,
  array(SELECT DISTINCT a.step FROM sagas_action a WHERE a.run_id = r.id AND a.contract_id = ANY(%(pks)s)
        AND a.state IN ('not_started', 'prepared', 'sent', 'unknown', 'partial', 'rejected') ORDER BY 1),
  array(SELECT DISTINCT a.step FROM sagas_compensation c JOIN sagas_action a ON a.id = c.action_id
        WHERE c.run_id = r.id AND c.contract_id = ANY(%(pks)s)
        AND c.state NOT IN ('confirmed', 'voided', 'skipped_by_operator') ORDER BY 1)
FROM sagas_run r JOIN sagas_definitionversion d ON d.id = r.definition_id
WHERE r.finished_at IS NULL AND {which} ORDER BY r.id LIMIT %(limit)s
"""
_PINS = "EXISTS (SELECT 1 FROM jsonb_each(d.pins) pin WHERE (pin.value ->> 'id')::bigint = ANY(%(pks)s))"


def needs_of_contract(tool: str, version: int) -> tuple[Need, ...]:
    """The live runs that pin this version, with the steps and compensations that it is still for. Raises `NotFound`."""
    return _needs(_PINS, [_contract(tool, version).pk])


def needs_of_workflow(name: str, version: int) -> tuple[Need, ...]:
    """The live runs of this version of a workflow. Raises `NotFound`."""
    row = _workflow(name, version)
    return _needs("d.id = %(definition)s", [], definition=row.pk)


def unknown_to_this_release() -> dict[str, tuple[Need, ...]]:
    """What live runs need and this release cannot call: why it cannot, and the runs. For checks before a start."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT (pin.value ->> 'id')::bigint FROM sagas_run r "
            "JOIN sagas_definitionversion d ON d.id = r.definition_id, jsonb_each(d.pins) pin "
            "WHERE r.finished_at IS NULL ORDER BY 1"
        )
        pinned = [row[0] for row in cursor.fetchall()]
    missing: dict[str, list[int]] = {}
    for pk in pinned:
        if why := unknown_here(contract_by_id(pk)):
            missing.setdefault(why, []).append(pk)
    return {why: _needs(_PINS, pks) for why, pks in missing.items()}


def retire_contract(
    tool: str, version: int, *, actor: Actor, reason: str, withdraw: bool = False
) -> tuple[Need, ...]:
    """Take a contract's version out of use. Raises `StillNeeded` while live runs pin it, `NotFound`.

    `withdraw`: although they do. Returns the runs that need it and will be handed to a person when they come to it;
    requests for a signature over a call under it are void.
    """
    with durable():
        lock_freeze()
        needs = needs_of_contract(tool, version)
        if needs and not withdraw:
            raise StillNeeded(f"version {version} of {tool}", needs)
        _store(CONTRACT, tool, version, actor, reason, withdraw)
        if withdraw:
            approvals.void_for_tool(tool, actor=actor, reason=reason)
        return needs


def retire_workflow(
    name: str, version: int, *, actor: Actor, reason: str, withdraw: bool = False
) -> tuple[Need, ...]:
    """Let no new run begin with a version. Raises `StillNeeded` while runs of it are live, `NotFound`.

    `withdraw`: although they are. They go on by it; nothing is taken from them.
    """
    with durable():
        lock_freeze()
        needs = needs_of_workflow(name, version)
        if needs and not withdraw:
            raise StillNeeded(f"version {version} of {name}", needs)
        _store(WORKFLOW, name, version, actor, reason, withdraw)
        return needs


def reinstate(kind: str, name: str, version: int, *, actor: Actor, reason: str) -> None:
    """Take a version back into use. Raises `NotFound` when it is not out of use."""
    with durable():
        lock_freeze()
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE sagas_retirement SET lifted_at = now_(), lifted_by = %s "
                "WHERE kind = %s AND name = %s AND version = %s AND lifted_at IS NULL",
                [actor.id, kind, name, version],
            )
            if cursor.rowcount != 1:
                raise NotFound(f"retired {kind}", f"{name} v{version}")
        _say(f"{kind}.reinstated", actor, reason, {"name": name, "version": version})


def retirements() -> tuple[RetirementFacts, ...]:
    """Every version that is out of use now, the newest first."""
    rows = Retirement.objects.filter(lifted_at=None).order_by("-retired_at", "-id")
    return tuple(
        RetirementFacts(
            kind=row.kind,
            name=row.name,
            version=row.version,
            withdrawn=row.withdrawn,
            reason=row.reason,
            by=row.retired_by_name,
            at=row.retired_at,
        )
        for row in rows
    )


def _needs(which: str, pks: list[int], **more: int) -> tuple[Need, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_NEEDS.format(which=which), {"pks": pks, "limit": _MOST_SHOWN, **more})
        return tuple(
            Need(
                run_ref=row[0],
                state=row[1],
                workflow=row[2] or "",
                workflow_version=row[3],
                steps=tuple(row[4]),
                compensations=tuple(row[5]),
            )
            for row in cursor.fetchall()
        )


def _store(kind: str, name: str, version: int, actor: Actor, reason: str, withdraw: bool) -> None:
    row = in_force(kind, name, version)
    if row is not None and (row.withdrawn or not withdraw):
        return
    if row is not None:
        Retirement.objects.filter(pk=row.pk).update(withdrawn=True, reason=reason)
    else:
        Retirement.objects.create(
            kind=kind,
            name=name,
            version=version,
            withdrawn=withdraw,
            reason=reason,
            retired_by=actor.id,
            retired_by_name=actor.name,
        )
    _say(
        f"{kind}.{'withdrawn' if withdraw else 'retired'}", actor, reason, {"name": name, "version": version}
    )


def _contract(tool: str, version: int) -> ContractVersion:
    row = ContractVersion.objects.filter(tool=tool, version=version).first()
    if row is None:
        raise NotFound("published contract", f"{tool} v{version}")
    return row


def _workflow(name: str, version: int) -> DefinitionVersion:
    row = DefinitionVersion.objects.filter(name=name, version=version).first()
    if row is None:
        raise NotFound("published workflow", f"{name} v{version}")
    return row


def _say(name: str, actor: Actor, reason: str, after: Json) -> None:
    with connection.cursor() as cursor:
        entries.insert(cursor, [EntryRow(name=name, actor=actor, reason=reason, after=after)])
