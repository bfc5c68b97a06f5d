"""Edit and retry: send a refused step with other arguments, as a new call with a key of its own (S3-10).

What is shown masked and left untouched keeps its stored value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Looked
from workbench.commands._arguments import Arguments, Kind, StepReasonArguments, argument
from workbench.commands._command import Command


@dataclass(frozen=True, kw_only=True)
class EditArguments(StepReasonArguments):
    """`args` are all arguments of the step, not only those that change."""

    args: Any = argument(  # noqa: RUF009  it describes a field
        Kind.DOCUMENT,
        _("Arguments"),
        help=_("What is left at [masked] keeps its stored value."),
        max_length=200_000,
    )


class EditAndRetry(Command[EditArguments]):
    """Only what was refused may be edited; what is sent, unknown or done in part never."""

    verb: ClassVar[str] = "edit_and_retry"
    label: ClassVar[Any] = _("Edit and retry %(tool)s")
    label_alone: ClassVar[Any] = _("Edit and retry a step")
    reach: ClassVar[str] = "writes"
    arguments: ClassVar[type[Arguments]] = EditArguments
    needs_preview: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"args"})
    claims: ClassVar[bool] = True
    schedules: ClassVar[bool] = True

    @classmethod
    def run(cls, desk: api.Desk, *, arguments: EditArguments, looked: Looked | None) -> None:
        desk.edit_and_retry(arguments.step, args=arguments.args)
