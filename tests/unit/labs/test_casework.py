"""What a person of the demo does at a case, and what they bear."""

from __future__ import annotations

import pytest

from workbench.labs.browser import Form, Page, Visitor
from workbench.labs.casework import TRIES, Desk, NotSettled


class Someone(Visitor):
    """Sees a case that may or may not be claimed; is answered in turn as told, the last answer for ever."""

    def __init__(self, *answers: int, offered: bool = True) -> None:
        self.answers, self.offered, self.asked = list(answers), offered, 0

    def get(self, path: str) -> Page:
        forms = {"claim": Form("claim/", {"verb": "claim"})} if self.offered else {}
        return Page(200, path, {"other": Form("ask/", {"verb": "query"}), **forms})

    def post(self, form: Form, **filled: str | list[str]) -> Page:
        assert form.fields == {"verb": "claim"}
        self.asked += 1
        return Page(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0], form.action)


def test_a_case_is_claimed_once() -> None:
    who = Someone(200)
    Desk(who, "HF-2001").claim()
    assert who.asked == 1


def test_whoever_is_refused_because_the_engine_was_asking_tries_again() -> None:
    who = Someone(409, 200)
    Desk(who, "HF-2001").claim()
    assert who.asked == 2


@pytest.mark.parametrize(("who", "asked"), [(Someone(409), TRIES), (Someone(200, offered=False), 0)])
def test_a_case_that_cannot_be_claimed_says_so(who: Someone, asked: int) -> None:
    with pytest.raises(NotSettled, match="HF-2001 cannot be claimed"):
        Desk(who, "HF-2001").claim()
    assert who.asked == asked
