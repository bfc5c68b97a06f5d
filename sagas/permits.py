"""What is signed: the very call that will be made, as a document, and its digest.

Pure. The digest covers what executes and nothing that only explains it.
"""

from __future__ import annotations

from sagas.facts import ActionFacts, CompensationFacts, RunFacts
from tools.canonical import fingerprint
from tools.contract import Json

LIFE_MINUTES = 15.0
"""Minutes that a request, and a signature, is good for."""


def document(facts: RunFacts, action: ActionFacts, compensation: CompensationFacts | None) -> dict[str, Json]:
    """The call as it will be made, bound to run, step, generation and contract.

    A compensation is bound to the forward effect besides; a forward call (None) to what was there before it.
    """
    if compensation is None:
        return {
            "domain": "amends.call.v1",
            "run": facts.ref,
            "definition": facts.definition_digest,
            "step": action.step,
            "item": action.item,
            "generation": action.generation,
            "tool": action.tool,
            "contract": action.contract.digest,
            "system": action.contract.system,
            "prior": None if action.prior_read_at is None else fingerprint(action.prior_state),
            "key": action.key,
            "args": action.args,
        }
    return {
        "domain": "amends.compensation.v1",
        "run": facts.ref,
        "definition": facts.definition_digest,
        "step": action.step,
        "item": action.item,
        "generation": action.generation,
        "forward_key": action.key,
        "forward_reference": action.provider_ref,
        "tool": compensation.tool,
        "contract": compensation.contract.digest,
        "system": compensation.contract.system,
        "kind": compensation.kind,
        "key": compensation.key,
        "args": compensation.args,
    }


def digest_of(content: Json) -> str:
    """SHA-256 over the canonical form of a document."""
    return fingerprint(content)
