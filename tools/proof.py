"""What in an answer proves success under a contract: its schema, the reference, our key, the success condition.

Sentences say what is missing; "" = nothing is. Judges no status and no error.
"""

from __future__ import annotations

from tools import conditions
from tools.bindings import Unbindable, bindings_in
from tools.contract import Contract, Json
from tools.json_schema import fault_of_part
from tools.pointers import MISSING, find

_REFERENCE_LONGEST = 500


def whole_fault(contract: Contract, body: Json, *, key: str, schema_fault: str) -> str:
    """Why a 2xx body does not prove success; `schema_fault` is what its schema says of it."""
    if schema_fault:
        return f"the answer does not fit the contract: {schema_fault}"
    return _unproved(contract, body, key)


def part_fault(contract: Contract, members: Json, *, key: str) -> str:
    """Why what was read of an answer that was too large does not prove success.

    Everything that the contract itself reads of an answer has to be there, a default does not stand in for it: the
    value may be in the part that nobody read.
    """
    if not isinstance(members, dict):
        return "the answer cannot be read"
    if fault := fault_of_part(contract.result_schema, members):
        return f"the answer does not fit the contract: {fault}"
    if contract.has_effect:
        if contract.items is not None or not (contract.reference or contract.echo or contract.succeeded_when):
            return "the answer cannot be read to its end"
        made_up = dict(contract.compensation.args) if contract.compensation else {}
        needed = [binding.pointer for binding in bindings_in(made_up) if binding.source == "result"]
        missing = [pointer for pointer in needed if pointer == "" or find(members, pointer) is MISSING]
        if missing:
            return f"what was read of the answer ends before {missing[0] or 'its end'}"
    return _unproved(contract, members, key)


def _unproved(contract: Contract, body: Json, key: str) -> str:
    """Which of the proofs that the contract asks for is not in the body."""
    if contract.reference and reference_in(body, contract.reference) is None:
        return f"the answer carries no reference at {contract.reference}"
    if contract.echo and key and not conditions.same(find(body, contract.echo), key):
        return f"the answer at {contract.echo} does not carry our key"
    if contract.succeeded_when is not None:
        try:
            succeeded = conditions.evaluate(contract.succeeded_when, body, {"key": key})
        except Unbindable as error:
            return f"success cannot be told: {error}"
        if not succeeded:
            return f"the answer does not say that {contract.succeeded_when.text}"
    return ""


def reference_in(body: Json, pointer: str) -> str | None:
    """The reference at this place, as text; None where there is none that could be stored and asked for."""
    found = find(body, pointer) if pointer else MISSING
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str) and 0 < len(found) <= _REFERENCE_LONGEST and found.strip():
        return found if found.isprintable() and "\ufffd" not in found else None
    return None
