"""Reads contract and definition files, says all that is wrong with them, and publishes what is right.

Publishing is idempotent; what others lean on goes first. A published version never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sagas import api
from sagas.errors import EngineError
from sagas.facts import Actor, Need
from tools import lint
from tools.contract import Contract
from tools.definition import Definition
from tools.problems import FileProblems
from tools.reader import read_contract, read_definition
from workbench.errors import WorkbenchError

SUFFIXES = {".toml", ".json"}


class NotInOrder(WorkbenchError):
    """The lint found errors, or a waiver lets nothing pass; nothing was published."""

    code = "not_in_order"


@dataclass(frozen=True, kw_only=True)
class Said:
    """One line about a file. `blocks` keeps it from being published."""

    text: str
    blocks: bool = True


@dataclass(kw_only=True)
class Read[T]:
    """What was read, by file, and what there is to say about it."""

    found: dict[Path, T] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing stands in the way of publishing all of it."""
        return not any(line.blocks for line in self.said)


def contracts(paths: Iterable[Path]) -> Read[Contract]:
    """Every contract below `paths`, read and linted against the newest of each tool."""
    read = _read(paths, read_contract)
    known = newest(read.found.values())
    for path, contract in read.found.items():
        read.said += _findings(path, lint.check_contract(contract, known))
    return read


def newest(contracts: Iterable[Contract]) -> dict[str, Contract]:
    """The contract with the highest version of each tool."""
    return {one.tool: one for one in sorted(contracts, key=lambda one: (one.tool, one.version))}


def in_use(definition: Definition, contracts: Iterable[Contract]) -> dict[str, Contract]:
    """What a definition would pin: the versions that its steps name, of everything else the newest."""
    contracts = list(contracts)
    named = {(step.tool, step.contract_version) for step in definition.steps}
    return newest(contracts) | {one.tool: one for one in contracts if (one.tool, one.version) in named}


def definitions(
    paths: Iterable[Path], contracts: Iterable[Contract], *, waivers: Sequence[lint.Waiver] = ()
) -> Read[Definition]:
    """Every definition below `paths`, read and linted against the contracts that it would pin.

    Each waiver lets its errors pass in every one of them; a waiver that none needs is an error itself.
    """
    read, known = _read(paths, read_definition), list(contracts)
    everywhere: list[lint.Finding] = []
    for path, definition in read.found.items():
        findings = lint.check(definition, in_use(definition, known))
        everywhere += findings
        read.said += _findings(path, findings, waivers)
    read.said += [Said(text=fault) for fault in lint.faults_of_waivers(waivers, everywhere)]
    return read


def publish_contracts(read: Read[Contract], *, actor: Actor) -> Iterator[str]:
    """Publish in the order of dependence, saying a line for each. Raises EngineError at the first refusal."""
    for contract in _in_order(read.found.values()):
        new = api.publish_contract(contract, actor=actor)
        yield f"{contract.tool} version {contract.version}: {'published' if new else 'unchanged'}"


def publish_definitions(
    read: Read[Definition], *, actor: Actor, waivers: Sequence[lint.Waiver] = ()
) -> Iterator[str]:
    """Publish each, saying a line for it. Raises NotInOrder or EngineError at the first refusal.

    The lint runs once more here, against the published contracts: those are what the definition pins. A
    definition is published with the waivers that it needs.
    """
    for path, definition in read.found.items():
        findings = api.check_definition(definition)
        stopped = [line.text for line in _findings(path, findings, waivers) if line.blocks]
        if stopped:
            raise NotInOrder("\n".join(stopped))
        needed = [waiver for waiver in waivers if waiver.code in {finding.code for finding in findings}]
        new = api.publish_definition(definition, actor=actor, waivers=needed)
        done = "published" if new else "unchanged"
        waived = f", waived: {', '.join(waiver.code for waiver in needed)}" if new and needed else ""
        yield f"{definition.name} version {definition.version}: {done}{waived}"


REFUSALS = (EngineError, NotInOrder)


def needs_in_lines(needs: Iterable[Need]) -> Iterator[str]:
    """Each live run that needs a version, on a line: what it still needs it for."""
    for need in needs:
        workflow = f"{need.workflow} v{need.workflow_version}" if need.workflow else "steps of its own"
        steps = f"; open steps: {', '.join(need.steps)}" if need.steps else ""
        made_up = f"; compensations of: {', '.join(need.compensations)}" if need.compensations else ""
        yield f"{need.run_ref} ({need.state}, {workflow}){steps}{made_up}"


def _read[T](paths: Iterable[Path], reader: Callable[[Path], T]) -> Read[T]:
    read: Read[T] = Read()
    for path in files(paths):
        try:
            read.found[path] = reader(path)
        except FileProblems as error:
            read.said += [
                Said(
                    text=f"{problem.path}:{problem.line}:{problem.column}: "
                    f"{problem.where + ': ' if problem.where else ''}{problem.message} ({problem.remedy})"
                )
                for problem in error.problems
            ]
    return read


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files themselves, and those directly in the folders, by name."""
    for path in paths:
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        else:
            yield path


def _findings(
    path: Path, findings: Sequence[lint.Finding], waivers: Sequence[lint.Waiver] = ()
) -> Iterator[Said]:
    standing = lint.unwaived(findings, waivers)
    for finding in findings:
        where = f"{finding.step}: " if finding.step else ""
        waived = "waived " if finding.severity is lint.Severity.ERROR and finding not in standing else ""
        text = f"{path}: {waived}{finding.severity} {finding.code}: {where}{finding.message} ({finding.fix})"
        yield Said(text=text, blocks=finding in standing)


def _in_order(contracts: Iterable[Contract]) -> Iterator[Contract]:
    """Those first that others lean on, a tool's versions in their order; a circle is broken where it is met."""
    done: set[str] = set()
    known: dict[str, list[Contract]] = {}
    for contract in sorted(contracts, key=lambda one: one.version):
        known.setdefault(contract.tool, []).append(contract)

    def visit(tool: str) -> Iterator[Contract]:
        if tool in done or tool not in known:
            return
        done.add(tool)
        for contract in known[tool]:
            for other in _leans_on(contract):
                yield from visit(other)
        yield from known[tool]

    for tool in sorted(known):
        yield from visit(tool)


def _leans_on(contract: Contract) -> Iterator[str]:
    if contract.status_query is not None:
        yield contract.status_query.tool
    if contract.dry_run is not None:
        yield contract.dry_run.tool
    if contract.prior_state is not None:
        yield contract.prior_state.tool
    if contract.compensation is not None:
        yield contract.compensation.tool
        checks = (contract.compensation.already_done, contract.compensation.verify)
        for condition in (*contract.compensation.preconditions, *checks):
            if condition is not None and condition.read:
                yield condition.read
