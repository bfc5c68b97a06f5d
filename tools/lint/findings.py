"""What the lint says: a code, where, what is wrong there, and how to put it right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools.contract import Contract
from tools.lint.codes import CODES, Code, Severity

type Contracts = Mapping[str, Contract]
"""The contracts of all tools that can be reached, by tool name."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding. `step` is the step's id; for a contract by itself the tool's name; "" for the whole."""

    code: str
    step: str
    message: str
    fix: str

    @property
    def rule(self) -> Code:
        """The rule that this finding is of."""
        return CODES[self.code]

    @property
    def severity(self) -> Severity:
        """How grave it is: the same for every finding of a code."""
        return self.rule.severity


def found(code: Code, step: str, message: str, fix: str = "") -> Finding:
    """A finding of a rule; the rule's own fix unless this place has a better one."""
    return Finding(code=code.code, step=step, message=message, fix=fix or code.fix)


def blocks(findings: Iterable[Finding]) -> bool:
    """Whether any finding keeps a publication back."""
    return any(finding.severity is Severity.ERROR for finding in findings)
