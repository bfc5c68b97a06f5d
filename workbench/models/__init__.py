"""The workbench's tables: fields, constraints and `__str__`. Decisions live in commands and policies."""

from workbench.models.assignment import Assignment
from workbench.models.bulk import Bulk, BulkMember
from workbench.models.pace import Pace
from workbench.models.presence import Presence
from workbench.models.preview import Preview
from workbench.models.receipt import Receipt
from workbench.models.token import ApiToken
from workbench.models.user import User
from workbench.models.view import SavedView

__all__ = [
    "ApiToken",
    "Assignment",
    "Bulk",
    "BulkMember",
    "Pace",
    "Presence",
    "Preview",
    "Receipt",
    "SavedView",
    "User",
]
