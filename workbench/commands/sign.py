"""Sign: say yes to the one call that a request speaks of; it runs next, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import SignoffFacts
from workbench import policies
from workbench.commands._arguments import REASON_LENGTH, Arguments, Kind, argument
from workbench.commands._command import SignoffCommand
from workbench.errors import Answer, Refusal, Sentence


@dataclass(frozen=True, kw_only=True)
class SignArguments(Arguments):
    """`digest` is that of the document as it was shown; `reason` is the note beside the signature."""

    digest: str = argument(Kind.TEXT, _("Digest"), max_length=64)
    reason: str = argument(
        Kind.REASON, _("Note"), default="", help="", min_length=REASON_LENGTH, max_length=2000
    )


class Sign(SignoffCommand[SignArguments]):
    """One signature, one person, one run of the call; no signature stands for another call."""

    verb: ClassVar[str] = "sign"
    label: ClassVar[Any] = _("Sign and start")
    said: ClassVar[Any] = _("Signed at %(at)s. It starts now, once.")
    key: ClassVar[str] = "s"
    arguments: ClassVar[type[Arguments]] = SignArguments
    schedules: ClassVar[bool] = True
    confirms: ClassVar[bool] = True

    @classmethod
    def refusal(cls, *, signoff: SignoffFacts, arguments: SignArguments) -> Refusal | None:
        at_stake = policies.signoff_risk(signoff.level, signoff.run.amount)
        if arguments.reason or not policies.note_needed(at_stake):
            return None
        text = _("The risk is %(risk)s: write at least %(least)s characters as a note.")
        parts = {"risk": policies.LEVEL_WORDS[at_stake], "least": REASON_LENGTH}
        sentence = Sentence(text, parts)
        return Refusal(answer=Answer.INVALID, code="invalid", sentence=sentence, fields={"reason": sentence})

    @classmethod
    def run(cls, desk: api.Desk, *, ref: str) -> None:
        desk.sign(ref)
