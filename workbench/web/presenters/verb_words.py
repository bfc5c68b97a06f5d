"""What each verb does, under its name in the panel, and what changes where no call goes out."""

from __future__ import annotations

from django.utils.translation import gettext as _


def about(verb: str) -> str:
    """What a verb does, under its name."""
    known = {
        "query_status": _("Ask the provider whether it took effect"),
        "retry": _("Send it again with the same key"),
        "edit_and_retry": _("Send it with other arguments, as a new call with a new key"),
        "redo": _("Make compensated steps once more, as new calls with new keys"),
        "resolve_happened": _("You found the effect and know its reference"),
        "resolve_not_happened": _("You made sure that nothing happened"),
        "mark_acceptable": _("Keep the state as it is and close the case"),
        "accept_items": _("Nothing was done for them, and nothing will be"),
        "compensate": _("Make up for what was done, last step first"),
        "skip_compensation": _("Its effect stays; the earlier ones go on"),
        "stop_and_compensate": _("Go no further, make up for what was done"),
        "escalate": _("One level up; the clock keeps running"),
        "resume": _("Let the system go on from here"),
        "continue_compensation": _("The calls that are left go out, in the same order"),
        "assign": _("Somebody else holds the case from then on"),
        "confirm_verdict": _("You found the same; it counts from then on"),
        "decline_verdict": _("You do not stand to it; nothing is settled"),
    }
    return known.get(verb, "")


def record_only(verb: str) -> str:
    """What changes when no call goes out."""
    known = {
        "resolve_happened": _("No call that changes anything. The step becomes Confirmed in the record."),
        "resolve_not_happened": _("No call. The step becomes Rejected in the record, as you state it."),
        "mark_acceptable": _(
            "No call that changes anything. The case closes as Accepted, not as succeeded; "
            "an unknown step stays Unknown in the record until you accept it."
        ),
        "accept_items": _(
            "No call. The items that you pick become Accepted in the record; no retry sends them any more."
        ),
        "skip_compensation": _("No call. The compensation is given up and its effect counts as left."),
        "assign": _("No call. The case and your reason go to the person that you name."),
        "escalate": _("No call. The case goes one level up; what you see now and your reason go with it."),
        "resume": _("The system goes on with the next step by its own rules."),
    }
    return known.get(verb, _("No call goes out."))
