"""Whether a tool can still be called under a contract: it is not withdrawn, and this release knows the way to it.

Calls nothing. What is out of reach goes to a person; it is neither tried again nor passed over.
"""

from __future__ import annotations

from importlib.util import find_spec

from django.conf import settings

from sagas.models import Retirement
from tools.contract import Contract, PythonCall

CONTRACT, WORKFLOW = "contract", "workflow"


def unknown_here(contract: Contract) -> str:
    """Why this release cannot call the tool at all; "" if it can. Asks neither the database nor the tool."""
    if isinstance(contract.call, PythonCall):
        module = contract.call.target.partition(":")[0]
        try:
            found = find_spec(module)
        except (ImportError, ValueError):
            found = None
        return (
            "" if found else f"{contract.tool} is not available in this release: there is no module {module}"
        )
    if contract.system in settings.TOOL_SYSTEMS:
        return ""
    return f"{contract.tool} is not available in this release: the system {contract.system} has no address"


def in_force(kind: str, name: str, version: int) -> Retirement | None:
    """The retirement of this version, None while it may be used."""
    return Retirement.objects.filter(kind=kind, name=name, version=version, lifted_at=None).first()


def retired(kind: str) -> frozenset[tuple[str, int]]:
    """Every version of this kind that nothing new may use."""
    rows = Retirement.objects.filter(kind=kind, lifted_at=None)
    return frozenset(rows.values_list("name", "version"))
