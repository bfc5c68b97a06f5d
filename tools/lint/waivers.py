"""Waivers: somebody answers, by name and with a reason, for an error that the lint found.

Decides only what a waiver may cover; who waived and when is the engine's record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.lint.codes import CODES, Severity
from tools.lint.findings import Finding


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A code that is let pass in one definition, and why."""

    code: str
    reason: str


def faults_of_waivers(waivers: Iterable[Waiver], findings: Iterable[Finding]) -> tuple[str, ...]:
    """What is wrong with the waivers themselves, as sentences: only a finding that is there can be waived."""
    present = {finding.code for finding in findings}
    return tuple(_faults(tuple(waivers), present))


def _faults(waivers: tuple[Waiver, ...], present: set[str]) -> Iterator[str]:
    for waiver in waivers:
        code = CODES.get(waiver.code)
        if code is None:
            yield f"{waiver.code} is no code of the check"
        elif not waiver.reason.strip():
            yield f"{waiver.code}: a waiver says why"
        elif code.severity is Severity.WARNING:
            yield f"{waiver.code} is a warning and keeps nothing back: there is nothing to waive"
        elif not code.waivable:
            yield f"{waiver.code} cannot be waived: {code.harm[0].lower()}{code.harm[1:]}"
        elif waiver.code not in present:
            yield f"{waiver.code} was not found here: there is nothing to waive"
        if sum(other.code == waiver.code for other in waivers) > 1:
            yield f"{waiver.code} is waived twice"


def unwaived(findings: Iterable[Finding], waivers: Iterable[Waiver] = ()) -> tuple[Finding, ...]:
    """The errors that stand in the way of a publication: all but those that may be waived and are."""
    let_pass = {
        one.code for one in waivers if one.reason.strip() and one.code in CODES and CODES[one.code].waivable
    }
    return tuple(one for one in findings if one.severity is Severity.ERROR and one.code not in let_pass)
