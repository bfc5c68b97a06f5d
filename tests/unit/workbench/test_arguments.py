"""What a form or a JSON body becomes before a command sees it, and the sentences for what does not fit."""

from dataclasses import dataclass

import pytest

from workbench.commands import COMMANDS, SYSTEM_COMMANDS, Kind, fields_of
from workbench.commands._arguments import Arguments, ReasonArguments, StepReasonArguments, argument, parse

GOOD_REASON = "Checked with the carrier by phone"


@dataclass(frozen=True, kw_only=True)
class Sample(ReasonArguments):
    steps: tuple[str, ...] = argument(Kind.STEPS, "Steps", default=())
    scope: str = argument(Kind.CHOICE, "Scope", default="forward", choices=("forward", "writes"))


def test_arguments_that_are_whole_become_a_frozen_value() -> None:
    parsed = parse(StepReasonArguments, {"step": " s2 ", "reason": GOOD_REASON})

    assert parsed == StepReasonArguments(step="s2", reason=GOOD_REASON)


def test_defaults_stand_for_what_is_not_given() -> None:
    assert parse(Sample, {"reason": GOOD_REASON}) == Sample(reason=GOOD_REASON)


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
    ],
)
def test_every_wrong_argument_is_named_with_a_sentence(raw: dict[str, object], wrong: set[str]) -> None:
    problems = parse(Sample, raw)

    assert not isinstance(problems, Arguments)
    assert set(problems) == wrong
    assert all(str(sentence) for sentence in problems.values())


def test_a_short_reason_is_told_how_long_it_must_be() -> None:
    problems = parse(ReasonArguments, {"reason": "because"})

    assert not isinstance(problems, Arguments)
    assert str(problems["reason"]) == "Write at least 15 characters as the reason."


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
        asks = any(field.kind is Kind.REASON for field in fields_of(command.arguments))
        assert asks == (verb not in silent), verb
        assert command.needs_preview == (verb not in blind), verb
    for verb, system_command in SYSTEM_COMMANDS.items():
        assert any(field.kind is Kind.REASON for field in fields_of(system_command.arguments)), verb


def test_a_verb_is_its_file_and_its_registry_name() -> None:
    for verb, command in COMMANDS.items():
        assert (command.__module__, command.verb) == (f"workbench.commands.{verb}", verb)
    for verb, system_command in SYSTEM_COMMANDS.items():
        assert (system_command.__module__, system_command.verb) == (f"workbench.commands.{verb}", verb)
