"""Tables of the engine: fields and constraints only. `sagas.ledger` alone writes them."""

from sagas.models.action import Action, Attempt
from sagas.models.compensation import Compensation
from sagas.models.definition import ContractVersion, DefinitionVersion
from sagas.models.ear import Ear
from sagas.models.entry import Entry
from sagas.models.evidence import Evidence
from sagas.models.freeze import Freeze
from sagas.models.gate import Gate, Turn
from sagas.models.handoff import Handoff, Question
from sagas.models.outbox import Outbox
from sagas.models.permit import Permit
from sagas.models.proposal import Proposal
from sagas.models.reconciliation import Finding, Reconciliation
from sagas.models.retirement import Retirement
from sagas.models.run import Run
from sagas.models.team import TeamVersion
from sagas.models.worker import Worker

__all__ = [
    "Action",
    "Attempt",
    "Compensation",
    "ContractVersion",
    "DefinitionVersion",
    "Ear",
    "Entry",
    "Evidence",
    "Finding",
    "Freeze",
    "Gate",
    "Handoff",
    "Outbox",
    "Permit",
    "Proposal",
    "Question",
    "Reconciliation",
    "Retirement",
    "Run",
    "TeamVersion",
    "Turn",
    "Worker",
]
