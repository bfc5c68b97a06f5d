"""What was just read, weighed for a verdict: whether it disproves a statement, or an end state does not hold."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sagas.facts import EndStateCheck, Looked
from workbench.errors import Answer, Refusal, Sentence


def why_not_acceptable(looked: Looked | None, end_state: str) -> Refusal | None:
    """Whether the end state is none of the definition's, or what was just read speaks against it."""
    checks = looked.end_states if looked is not None else ()
    chosen = next((check for check in checks if check.id == end_state), None)
    if chosen is None:
        sentence = Sentence(_("The definition has no such end state."))
        return Refusal(
            answer=Answer.INVALID,
            code="no_such_end_state",
            sentence=sentence,
            fields={"end_state": sentence},
        )
    return None if chosen.met else _unmet(chosen)


def _unmet(check: EndStateCheck) -> Refusal:
    unread = [condition.text for condition in check.conditions if condition.met is None]
    if unread:
        text, code = _("This could not be read just now: %(conditions)s"), "end_state_unread"
    else:
        text, code = _("This does not hold: %(conditions)s"), "end_state_unmet"
    open_ones = unread or [condition.text for condition in check.conditions if not condition.met]
    sentence = Sentence(text, {"conditions": "; ".join(open_ones)})
    return Refusal(answer=Answer.CONFLICT, code=code, sentence=sentence)


def why_disproved(looked: Looked | None, reference: str) -> Refusal | None:
    """Whether what was just read says that it did not happen under this reference."""
    if looked is None or looked.verified is not False:
        return None
    text = _("The provider does not confirm %(reference)s: %(detail)s")
    sentence = Sentence(text, {"reference": reference, "detail": looked.detail})
    fields = {"reference": sentence}
    return Refusal(answer=Answer.INVALID, code="disproved", sentence=sentence, fields=fields)
