"""The lint: what is wrong or doubtful in a definition, under the contracts of the tools that it uses.

Form is the reader's work. Every finding has a stable code (`tools.lint.codes`, docs/lint.md).
"""

from tools.lint.codes import CODES, Code, Severity
from tools.lint.contracts import check_contract
from tools.lint.definitions import check
from tools.lint.findings import Contracts, Finding, blocks
from tools.lint.readiness import Answer, Mark, readiness
from tools.lint.waivers import Waiver, faults_of_waivers, unwaived

__all__ = [
    "CODES",
    "Answer",
    "Code",
    "Contracts",
    "Finding",
    "Mark",
    "Severity",
    "Waiver",
    "blocks",
    "check",
    "check_contract",
    "faults_of_waivers",
    "readiness",
    "unwaived",
]
