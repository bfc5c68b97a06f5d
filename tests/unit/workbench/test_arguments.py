"""What a form or a JSON body becomes before a command sees it, and the sentences for what does not fit."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from workbench.commands import (
    CODES,
    COMMANDS,
    SIGNOFF_COMMANDS,
    SYSTEM_COMMANDS,
    Kind,
    ReasonCode,
    bulk_codes,
    code_words,
    fields_of,
)
from workbench.commands._arguments import Arguments, ReasonArguments, StepReasonArguments, argument, parse

GOOD_REASON = "Checked with the carrier by phone"


@dataclass(frozen=True, kw_only=True)
class Sample(ReasonArguments):
    steps: tuple[str, ...] = argument(Kind.STEPS, "Steps", default=())
    scope: str = argument(Kind.CHOICE, "Scope", default="forward", choices=("forward", "writes"))


class Try:
    """A verb with codes of its own."""

    verb: ClassVar[str] = "retry"
    arguments: ClassVar[type[Arguments]] = Sample


class TryStep(Try):
    """The same about a step."""

    arguments: ClassVar[type[Arguments]] = StepReasonArguments


ALL: dict[str, Any] = {**COMMANDS, **SIGNOFF_COMMANDS, **SYSTEM_COMMANDS}


def test_arguments_that_are_whole_become_a_frozen_value() -> None:
    parsed = parse(TryStep, {"step": " s2 ", "reason": GOOD_REASON})

    assert parsed == StepReasonArguments(step="s2", reason=GOOD_REASON)


def test_defaults_stand_for_what_is_not_given() -> None:
    assert parse(Try, {"reason": GOOD_REASON}) == Sample(reason=GOOD_REASON)


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        ({}, {"reason"}),
        ({"reason": "too short"}, {"reason"}),
        ({"reason": " " * 40}, {"reason"}),
        ({"reason": "x" * 2001}, {"reason"}),
        ({"reason": GOOD_REASON + "\x00"}, {"reason"}),
        ({"reason": GOOD_REASON + "\ud800"}, {"reason"}),
        ({"reason": ["a list"]}, {"reason"}),
        ({"reason": GOOD_REASON, "scope": "all of it"}, {"scope"}),
        ({"reason": GOOD_REASON, "steps": {"s1": 1}}, {"steps"}),
        ({"reason": GOOD_REASON, "steps": [1]}, {"steps"}),
        ({"reason": GOOD_REASON, "amount": "5"}, {"amount"}),
        ({"reason": "short", "scope": "x"}, {"reason", "scope"}),
        ({"reason": GOOD_REASON, "reason_code": "because"}, {"reason_code"}),
        ({"reason": GOOD_REASON, "reason_code": "wrong_time"}, {"reason_code"}),
        ({"reason": GOOD_REASON, "reason_code": ["other"]}, {"reason_code"}),
    ],
)
def test_every_wrong_argument_is_named_with_a_sentence(raw: dict[str, object], wrong: set[str]) -> None:
    problems = parse(Try, raw)

    assert not isinstance(problems, Arguments)
    assert set(problems) == wrong
    assert all(str(sentence) for sentence in problems.values())


def test_a_short_reason_is_told_how_long_it_must_be() -> None:
    problems = parse(Try, {"reason": "because"})

    assert not isinstance(problems, Arguments)
    assert str(problems["reason"]) == "Write at least 15 characters as the reason."


def test_an_unknown_code_is_told_which_there_are() -> None:
    problems = parse(Try, {"reason": GOOD_REASON, "reason_code": "wrong_time"})

    assert not isinstance(problems, Arguments)
    assert str(problems["reason_code"]) == (
        "Choose one of provider_outage, cause_removed, customer_informed, risk_accepted, other."
    )


def test_a_code_is_kept_as_it_was_chosen_and_may_be_left_out() -> None:
    assert parse(Try, {"reason": GOOD_REASON, "reason_code": "other"}) == Sample(
        reason=GOOD_REASON, reason_code="other"
    )
    assert parse(Try, {"reason": GOOD_REASON, "reason_code": ""}) == Sample(reason=GOOD_REASON)


def test_whoever_rejects_has_to_choose_a_code() -> None:
    problems = parse(SIGNOFF_COMMANDS["reject"], {"reason": GOOD_REASON})

    assert not isinstance(problems, Arguments)
    assert set(problems) == {"reason_code"}
    assert "evidence_not_enough" in str(problems["reason_code"])


@pytest.mark.parametrize("verb", sorted(ALL))
def test_every_verb_that_asks_for_a_reason_has_codes_of_its_own_beside_it(verb: str) -> None:
    fields = fields_of(ALL[verb])
    codes = [field.choices for field in fields if field.kind is Kind.REASON_CODE]
    asks = any(field.kind is Kind.REASON for field in fields)

    if verb == "sign":  # its note is not a reason: whoever signs agrees with the one that was given
        assert codes == []
    else:
        assert codes == ([tuple(CODES[verb])] if asks else [])
        assert asks == (verb in CODES)
    if codes:
        assert [field.kind for field in fields][-2:] == [Kind.REASON_CODE, Kind.REASON]


def test_every_code_has_words_and_a_verb_that_offers_it_once() -> None:
    offered = [code for codes in CODES.values() for code in codes]

    assert set(offered) == set(ReasonCode)
    assert all(len(codes) == len(set(codes)) for codes in CODES.values())
    assert len({str(code_words(code)) for code in ReasonCode}) == len(ReasonCode)


def test_a_code_of_a_later_version_is_shown_as_it_stands() -> None:
    assert code_words("moon_phase") == "moon_phase"
    assert code_words("") == ""


def test_what_can_be_chosen_for_many_cases_can_be_chosen_for_each() -> None:
    many = set(CODES["bulk_start"])

    for verb in COMMANDS:
        assert set(bulk_codes(verb)) <= many, verb


def test_every_write_asks_for_a_reason_and_shows_a_preview() -> None:
    # A pause and a request that is withdrawn hold back and send nothing, so that there is nothing to preview.
    silent = {"query_status", "claim", "release", "comment", "ask_for_case", "pause_compensation"}
    blind = {
        "claim",
        "release",
        "comment",
        "ask_for_case",
        "reopen",
        "pause_compensation",
        "withdraw_signoff",
    }
    for verb, command in COMMANDS.items():
        asks = any(field.kind is Kind.REASON for field in fields_of(command))
        assert asks == (verb not in silent), verb
        assert command.needs_preview == (verb not in blind), verb
    for verb, system_command in SYSTEM_COMMANDS.items():
        assert any(field.kind is Kind.REASON for field in fields_of(system_command)), verb


def test_a_verb_is_its_file_and_its_registry_name() -> None:
    for verb, command in COMMANDS.items():
        assert (command.__module__, command.verb) == (f"workbench.commands.{verb}", verb)
    for verb, system_command in SYSTEM_COMMANDS.items():
        assert (system_command.__module__, system_command.verb) == (f"workbench.commands.{verb}", verb)
