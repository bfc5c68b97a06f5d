"""Other arguments for a step: what is still masked is put back, the rest is checked against the contract.

Pure. Who may edit, and when, is decided elsewhere.
"""

from __future__ import annotations

from sagas.errors import NotAllowed
from sagas.facts import ActionFacts, Obstacle
from tools.contract import Json
from tools.json_schema import schema_faults
from tools.redact import restored

MISPLACED = "still shows the mask, but nothing that is masked stood here"


def edited(action: ActionFacts, given: Json) -> Json:
    """The arguments to be sent: `given`, with what is left at the mask as it is stored in `action` (unmasked).

    Raises `NotAllowed` naming every field that does not fit the contract of the tool.
    """
    args, misplaced = restored(given, action.args, action.contract.secret_fields)
    faults = [(pointer, MISPLACED) for pointer in misplaced]
    faults += schema_faults(action.contract.args_schema, args)
    if faults:
        where, why = faults[0]
        sentence = f"The arguments do not fit: {where or 'the whole'} {why}"
        fields = tuple((f"args{pointer}", why) for pointer, why in faults)
        raise NotAllowed(
            Obstacle(
                code="args_do_not_fit",
                sentence=sentence,
                params={"where": where or "/", "why": why},
                fields=fields,
            )
        )
    return args


def changed(action: ActionFacts, args: Json) -> None:
    """Refuse an edit that edits nothing. Raises `NotAllowed`."""
    if args == action.args:
        sentence = "These are the arguments as they were. Retry sends them again."
        raise NotAllowed(Obstacle(code="args_unchanged", sentence=sentence))
