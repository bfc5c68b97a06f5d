"""Published contracts and definitions: how they get in, and how a stored document becomes a value again.

A published version never changes; a run pins what it started with (FV-2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from sagas.errors import AlreadyPublished, BadWaiver, ErrorsFound, NotFound, Retired
from sagas.facts import Actor, WaiverFacts
from sagas.models import ContractVersion, DefinitionVersion
from sagas.reach import CONTRACT, WORKFLOW, retired
from tools import lint
from tools.contract import Compensation, Condition, Contract, Json
from tools.definition import Definition
from tools.reader import published_contract, published_definition


@lru_cache(maxsize=512)
def _contract(pk: int) -> Contract:
    row = ContractVersion.objects.get(pk=pk)
    return published_contract(row.document)


@lru_cache(maxsize=256)
def _definition(pk: int) -> Definition:
    row = DefinitionVersion.objects.get(pk=pk)
    return published_definition(row.document)


@lru_cache(maxsize=256)
def _pins(pk: int) -> dict[str, int]:
    row = DefinitionVersion.objects.get(pk=pk)
    return {tool: int(pin["id"]) for tool, pin in row.pins.items()}


def contract_by_id(pk: int) -> Contract:
    """The contract of a published version; cached, because a published version never changes."""
    return _contract(pk)


def definition_by_id(pk: int) -> Definition:
    """The definition of a published version; cached likewise."""
    return _definition(pk)


def pinned(definition_id: int, tool: str) -> tuple[int, Contract]:
    """The contract version that a definition pins for a tool. Raises `NotFound`."""
    pk = _pins(definition_id).get(tool)
    if pk is None:
        raise NotFound("pinned contract", tool)
    return pk, _contract(pk)


@lru_cache(maxsize=256)
def effective_contracts(definition_id: int) -> tuple[int, ...]:
    """The pinned contract versions of a definition whose calls have an effect; cached likewise."""
    return tuple(pk for pk in _pins(definition_id).values() if _contract(pk).has_effect)


def forget() -> None:
    """Empty the caches; only tests that rebuild the database need it."""
    _contract.cache_clear()
    _definition.cache_clear()
    _pins.cache_clear()
    effective_contracts.cache_clear()


def named_tools(contract: Contract) -> Iterator[str]:
    """The other tools that a contract leans on: its query, prior read, dry run and compensation, with their reads."""
    if contract.status_query is not None:
        yield contract.status_query.tool
    if contract.by_reference is not None and contract.by_reference.read:
        yield contract.by_reference.read
    if contract.dry_run is not None:
        yield contract.dry_run.tool
    if contract.prior_state is not None:
        yield contract.prior_state.tool
    if contract.compensation is not None:
        yield contract.compensation.tool
        yield from _reads(contract.compensation)


def _reads(compensation: Compensation) -> Iterator[str]:
    looked_at = (*compensation.preconditions, compensation.already_done, compensation.verify)
    for condition in looked_at:
        if condition is not None and condition.read:
            yield condition.read


def store_contract(contract: Contract, *, by: str) -> bool:
    """Store a contract; False when this very version is stored already. Raises `AlreadyPublished`."""
    stored = ContractVersion.objects.filter(tool=contract.tool, version=contract.version).first()
    if stored is not None:
        if stored.digest != contract.digest:
            raise AlreadyPublished(
                f"{contract.tool} version {contract.version} is published with other content. "
                f"A published version never changes: raise its version."
            )
        return False
    ContractVersion.objects.create(
        tool=contract.tool,
        version=contract.version,
        digest=contract.digest,
        document=contract.document,
        published_by=by,
    )
    return True


def latest_contracts() -> dict[str, Contract]:
    """The newest published contract of every tool."""
    newest: dict[str, Contract] = {}
    for pk in ContractVersion.objects.order_by("tool", "version").values_list("pk", flat=True):
        contract = _contract(pk)
        newest[contract.tool] = contract
    return newest


def contracts_for(definition: Definition) -> dict[str, tuple[int, Contract]]:
    """The contracts that a definition needs, transitively; steps by their named version, the rest newest.

    Tools that are not published are left out: the lint names them. A version out of use is never the newest.
    """
    needed: dict[str, tuple[int, Contract]] = {}
    retired_ones = retired(CONTRACT)
    waiting: list[tuple[str, int | None]] = [(step.tool, step.contract_version) for step in definition.steps]
    for end_state in definition.end_states:
        waiting += [(c.read, None) for c in end_state.conditions if isinstance(c, Condition) and c.read]
        waiting += [(one.tool, one.contract_version) for one in end_state.follow_ups]
    while waiting:
        tool, version = waiting.pop(0)
        if tool in needed:
            continue
        rows = ContractVersion.objects.filter(tool=tool)
        if version:
            row = rows.filter(version=version).first()
        else:
            gone = [number for name, number in retired_ones if name == tool]
            row = rows.exclude(version__in=gone).order_by("-version").first()
        if row is None:
            continue
        needed[tool] = (row.pk, _contract(row.pk))
        waiting += [(name, None) for name in named_tools(needed[tool][1])]
    return needed


def check_definition(definition: Definition) -> tuple[lint.Finding, ...]:
    """What the lint finds in a definition against the published contracts."""
    contracts = {tool: contract for tool, (_, contract) in contracts_for(definition).items()}
    return lint.check(definition, contracts)


def store_definition(definition: Definition, *, by: Actor, waivers: Sequence[lint.Waiver] = ()) -> bool:
    """Store a definition with the contracts it pins; False when stored already. Raises `AlreadyPublished`.

    Raises `ErrorsFound` when the lint finds errors that `waivers` do not let pass, `BadWaiver` for a waiver
    that lets nothing pass (S2-17).
    """
    stored = DefinitionVersion.objects.filter(name=definition.name, version=definition.version).first()
    if stored is not None:
        if stored.digest != definition.digest:
            raise AlreadyPublished(
                f"{definition.name} version {definition.version} is published with other content. "
                f"A published version never changes: raise its version."
            )
        return False
    findings = check_definition(definition)
    if faults := lint.faults_of_waivers(waivers, findings):
        raise BadWaiver("; ".join(faults))
    if why := out_of_use({(one.tool, one.version) for _, one in contracts_for(definition).values()}):
        raise Retired(f"{why} Name another version of the contract in the workflow's steps.")
    if standing := lint.unwaived(findings, waivers):
        raise ErrorsFound("; ".join(f"{one.code} {one.step}: {one.message}" for one in standing))
    DefinitionVersion.objects.create(
        name=definition.name,
        version=definition.version,
        title=definition.title,
        digest=definition.digest,
        document=definition.document,
        pins=_pins_of(definition),
        waivers=[_waived(waiver, findings, by) for waiver in waivers],
        published_by=by.id,
    )
    return True


def out_of_use(contracts: Iterable[tuple[str, int]]) -> str:
    """Which of these contract versions are out of use, as sentences; "" if all may be used."""
    return " ".join(
        f"Version {version} of {tool} is out of use."
        for tool, version in sorted(retired(CONTRACT) & set(contracts))
    )


def must_be_in_use(row: DefinitionVersion) -> None:
    """Raise `Retired`, with what to do, for a version that no new run may begin with."""
    if (row.name, row.version) in retired(WORKFLOW):
        raise Retired(
            f"Version {row.version} of {row.name} is out of use: start another version, or publish one."
        )
    if why := out_of_use((tool, int(pin["version"])) for tool, pin in row.pins.items()):
        raise Retired(f"{why} Publish a version of {row.name or 'the steps'} that names another one.")


def _waived(waiver: lint.Waiver, findings: Sequence[lint.Finding], by: Actor) -> Json:
    steps = sorted({finding.step for finding in findings if finding.code == waiver.code})
    return {
        "code": waiver.code,
        "steps": steps,
        "reason": waiver.reason.strip(),
        "by": by.id,
        "by_name": by.name,
    }


def waivers_of(name: str, version: int) -> tuple[WaiverFacts, ...]:
    """The errors that were let pass when this version was published. Raises `NotFound`."""
    return waived_in(find_definition(name, version))


def waived_in(row: DefinitionVersion) -> tuple[WaiverFacts, ...]:
    """The errors that were let pass when this stored version was published."""
    return tuple(
        WaiverFacts(
            code=one["code"],
            title=lint.CODES[one["code"]].title,
            steps=tuple(one["steps"]),
            reason=one["reason"],
            by=one["by"],
            by_name=one["by_name"],
            at=row.published_at,
        )
        for one in row.waivers
    )


def newest_contract(tool: str) -> Contract | None:
    """The newest published contract of a tool, None if there is none."""
    pk = ContractVersion.objects.filter(tool=tool).order_by("-version").values_list("pk", flat=True).first()
    return None if pk is None else _contract(pk)


def newest_versions() -> dict[str, int]:
    """The newest published version of every tool's contract that is in use."""
    gone = retired(CONTRACT)
    rows = ContractVersion.objects.order_by("tool", "version").values_list("tool", "version")
    return {tool: version for tool, version in rows if (tool, version) not in gone}


def store_unnamed(definition: Definition, *, by: str) -> DefinitionVersion:
    """Store an ad-hoc list of steps as an unnamed version, inside the caller's transaction."""
    return DefinitionVersion.objects.create(
        name=None,
        version=definition.version,
        title=definition.title,
        digest=definition.digest,
        document=definition.document,
        pins=_pins_of(definition),
        published_by=by,
    )


def _pins_of(definition: Definition) -> dict[str, Json]:
    return {
        tool: {"id": pk, "version": contract.version, "digest": contract.digest}
        for tool, (pk, contract) in contracts_for(definition).items()
    }


def find_definition(name: str, version: int | None) -> DefinitionVersion:
    """A published definition, the newest in use unless a version is named. Raises `NotFound`."""
    rows = DefinitionVersion.objects.filter(name=name)
    if version:
        row = rows.filter(version=version).first()
    else:
        gone = [number for workflow, number in retired(WORKFLOW) if workflow == name]
        row = rows.exclude(version__in=gone).order_by("-version").first() or rows.order_by("-version").first()
    if row is None:
        raise NotFound("published workflow", f"{name} v{version}" if version else name)
    return row
