"""The words of error pages: what did not happen first, then who or what can help. No blame, no trace."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _


@dataclass(frozen=True, kw_only=True)
class ErrorWords:
    """One error in words; `number` is what a person can quote."""

    status: int
    icon: str
    title: str
    says: str
    number: str = ""


def words(status: int, *, sentence: str = "", number: str = "") -> ErrorWords:
    """What an error page of this status says; `sentence` is the server's own reason, where it has one."""
    icons = {403: "lock", 404: "search", 423: "pause", 429: "clock"}
    known = {
        400: (_("That request cannot be read"), _("Nothing was sent. Go back and reload the page.")),
        403: (
            _("You cannot open this"),
            _("Your account does not include it. An administrator can change that."),
        ),
        404: (
            _("There is nothing here"),
            _("The address may be mistyped. Cases and runs are never deleted."),
        ),
        409: (_("This changed while you were reading"), _("Nothing was sent. Reload the page.")),
        410: (_("This preview has expired"), _("Nothing was sent. Look at a new one.")),
        422: (_("Something needs fixing"), _("Nothing was sent.")),
        423: (_("This is frozen"), _("Nothing was sent. Reading and status queries still work.")),
        428: (_("Confirm it is you"), _("Nothing was sent. Log in again and repeat it.")),
        429: (_("Too many requests"), _("Nothing was sent. Wait a few seconds and try again.")),
        503: (
            _("The database does not answer"),
            _(
                "It may be back within a minute. What was ordered just now is on record, or it is not: "
                "read the case again before you repeat it."
            ),
        ),
    }
    unknown = (
        _("That did not work, and we do not know why"),
        _(
            "If a call had started, it shows up under Steps within a minute. Read the case again before you repeat it."
        ),
    )
    title, says = known.get(status, unknown)
    return ErrorWords(
        status=status, icon=icons.get(status, "warn"), title=title, says=sentence or says, number=number
    )


def old_form() -> ErrorWords:
    """What is told of a form that this session did not hand out, such as an old tab's after a new login."""
    return ErrorWords(
        status=403,
        icon="clock",
        title=_("This form is too old"),
        says=_("Nothing was sent. Open the page again and repeat it."),
    )
