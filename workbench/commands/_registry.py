"""Every verb by its name; the names are URL parts, words of the trail and words of the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.commands._command import Command, SignoffCommand, SystemCommand
from workbench.commands.accept_items import AcceptItems
from workbench.commands.ask_for_case import AskForCase
from workbench.commands.assign import Assign
from workbench.commands.bulk_continue import BulkContinue
from workbench.commands.bulk_pause import BulkPause
from workbench.commands.bulk_start import BulkStart
from workbench.commands.bulk_stop import BulkStop
from workbench.commands.claim import Claim
from workbench.commands.comment import Comment
from workbench.commands.compensate import Compensate
from workbench.commands.confirm_verdict import ConfirmVerdict
from workbench.commands.continue_compensation import ContinueCompensation
from workbench.commands.decline_verdict import DeclineVerdict
from workbench.commands.edit_and_retry import EditAndRetry
from workbench.commands.escalate import Escalate
from workbench.commands.freeze import Freeze
from workbench.commands.keep_frozen import KeepFrozen
from workbench.commands.mark_acceptable import MarkAcceptable
from workbench.commands.open_tool import OpenTool
from workbench.commands.pause_compensation import PauseCompensation
from workbench.commands.query_status import QueryStatus
from workbench.commands.redo import Redo
from workbench.commands.reject import Reject
from workbench.commands.release import Release
from workbench.commands.reopen import Reopen
from workbench.commands.resolve_happened import ResolveHappened
from workbench.commands.resolve_not_happened import ResolveNotHappened
from workbench.commands.resume import Resume
from workbench.commands.retry import Retry
from workbench.commands.sign import Sign
from workbench.commands.skip_compensation import SkipCompensation
from workbench.commands.stop_and_compensate import StopAndCompensate
from workbench.commands.unfreeze import Unfreeze
from workbench.commands.withdraw_signoff import WithdrawSignoff

# In the order of the panel: look, repeat, record, accept, make up for, pass on; then claims and remarks.
_ON_HANDOFFS: tuple[type[Command[Any]], ...] = (
    QueryStatus,
    ConfirmVerdict,
    DeclineVerdict,
    Retry,
    EditAndRetry,
    ResolveHappened,
    ResolveNotHappened,
    AcceptItems,
    MarkAcceptable,
    Compensate,
    SkipCompensation,
    Redo,
    StopAndCompensate,
    PauseCompensation,
    ContinueCompensation,
    WithdrawSignoff,
    Resume,
    Escalate,
    Assign,
    Claim,
    Release,
    AskForCase,
    Comment,
    Reopen,
)
_ON_SIGNOFFS: tuple[type[SignoffCommand[Any]], ...] = (Sign, Reject)
_ON_THE_SYSTEM: tuple[type[SystemCommand[Any]], ...] = (
    Freeze,
    Unfreeze,
    KeepFrozen,
    OpenTool,
    BulkStart,
    BulkPause,
    BulkContinue,
    BulkStop,
)

COMMANDS: Mapping[str, type[Command[Any]]] = {command.verb: command for command in _ON_HANDOFFS}
SIGNOFF_COMMANDS: Mapping[str, type[SignoffCommand[Any]]] = {
    command.verb: command for command in _ON_SIGNOFFS
}
SYSTEM_COMMANDS: Mapping[str, type[SystemCommand[Any]]] = {
    command.verb: command for command in _ON_THE_SYSTEM
}
