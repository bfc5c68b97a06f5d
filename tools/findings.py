"""What a lint says: a code, how grave it is, where, and how to put it right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tools.contract import Contract

type Contracts = Mapping[str, Contract]
"""The contracts of all tools that can be reached, by tool name."""


class Severity(StrEnum):
    """Whether a finding keeps a definition from being published."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding. `step` is the step's id, the tool's name for a contract, or ""."""

    code: str
    severity: Severity
    step: str
    message: str
    fix: str


def blocks(findings: tuple[Finding, ...]) -> bool:
    """Whether any finding keeps a publication back."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def error(code: str, step: str, message: str, fix: str) -> Finding:
    """A finding that stops a publication."""
    return Finding(code=code, severity=Severity.ERROR, step=step, message=message, fix=fix)


def warning(code: str, step: str, message: str, fix: str) -> Finding:
    """A finding to think about; it stops nothing."""
    return Finding(code=code, severity=Severity.WARNING, step=step, message=message, fix=fix)
