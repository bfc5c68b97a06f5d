"""What people can do, one verb a file. Doors call `dispatch`, `available`, `make_preview` and add nothing."""

from workbench.commands._arguments import LISTS, ArgumentField, Arguments, Kind, fields_of
from workbench.commands._bulks import BULKS, dismiss_bulk, locked_bulk, move_bulk, release_bulk, store_bulk
from workbench.commands._command import Command, SignoffCommand, SystemCommand
from workbench.commands._dispatch import dispatch
from workbench.commands._plans import FALLEN, Fallen, Plan, find_plan, make_plan, plan_that_ran, read_again
from workbench.commands._previews import Check, Preview, find_preview, make_preview
from workbench.commands._reason_codes import CODES, ReasonCode, bulk_codes, code_words
from workbench.commands._registry import COMMANDS, SIGNOFF_COMMANDS, SYSTEM_COMMANDS
from workbench.commands._result import Change, Result
from workbench.commands._signoffs import SignoffOffer, signoff_offers
from workbench.commands.available import Offer, available

__all__ = [
    "BULKS",
    "CODES",
    "COMMANDS",
    "FALLEN",
    "LISTS",
    "SIGNOFF_COMMANDS",
    "SYSTEM_COMMANDS",
    "ArgumentField",
    "Arguments",
    "Change",
    "Check",
    "Command",
    "Fallen",
    "Kind",
    "Offer",
    "Plan",
    "Preview",
    "ReasonCode",
    "Result",
    "SignoffCommand",
    "SignoffOffer",
    "SystemCommand",
    "available",
    "bulk_codes",
    "code_words",
    "dismiss_bulk",
    "dispatch",
    "fields_of",
    "find_plan",
    "find_preview",
    "locked_bulk",
    "make_plan",
    "make_preview",
    "move_bulk",
    "plan_that_ran",
    "read_again",
    "release_bulk",
    "signoff_offers",
    "store_bulk",
]
