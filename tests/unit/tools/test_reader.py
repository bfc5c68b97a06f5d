"""Reading contracts and definitions: all problems of a file, each at its place."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools.samples import DOCUMENT, READ, document
from tools.contract import (
    Compensation,
    CompensationKind,
    EffectKind,
    ErrorClass,
    KeySupport,
    Level,
    Meaning,
    RecoveryClass,
    Who,
)
from tools.definition import OnFailure, StepIs
from tools.problems import FileProblems, Problem
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition

CONTRACT = """\
tool = "send_letter"
version = 2
system = "post"
operation = "send"
effect_kind = "external_effect"
recovery_class = "irreversible"
level = "high"
reference = "/letter"
secret_fields = ["/args/address"]
require_confirmation = true
accepted_answer_s = 60

[texts]
title = "Letter"
done = "A letter went to {args.name}"
question = "did the letter leave?"

[call]
adapter = "http"
method = "POST"
path = "/letters"
body = { to = { from = "args", pointer = "/name" } }

[args_schema]
type = "object"
required = ["name"]
properties = { name = { type = "string" }, address = { type = "string" } }

[result_schema]
type = "object"
properties = { letter = { type = "string" } }

[idempotency]
support = "ignored"
retention_s = 3600

[statuses]
"409" = "refused"

[retry.temporary]
max_attempts = 3
first_delay_s = 0.2

[status_query]
tool = "find_letter"
args = { key = { from = "key" } }
found = { text = "the letter is known", pointer = "/letter" }
settle_s = 5

[escalation]
when = "nobody knows"
context = "name and key"
to = "Post room"
"""
DEFINITION: dict[str, Any] = {
    "name": "welcome",
    "version": 1,
    "title": "Welcome a customer",
    "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "on_failure": "handoff",
    "steps": [
        {
            "id": "letter",
            "tool": "send_letter",
            "contract_version": 2,
            "args": {"name": {"from": "input", "pointer": "/name"}},
            "on_rejected": "continue",
        }
    ],
    "end_states": [
        {
            "id": "sent",
            "title": "Sent",
            "conditions": [
                {"text": "sent", "step": "letter", "states": ["confirmed"]},
                {"text": "known", "read": "find_letter", "pointer": "/letter"},
            ],
        }
    ],
    "deadlines": {"default": 30},
}


def problems_of(tmp_path: Path, text: str, name: str = "x.toml") -> tuple[Problem, ...]:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(FileProblems) as caught:
        (read_contract if "tool =" in text or "tool" in name else read_definition)(path)
    return caught.value.problems


@pytest.mark.requirement("S0-26", "S0-82", "S1-5", "S0-28")
def test_a_contract_file_becomes_a_contract(tmp_path: Path) -> None:
    path = tmp_path / "send_letter.toml"
    path.write_text(CONTRACT, "utf-8")

    contract = read_contract(path)

    assert (contract.tool, contract.version, contract.level) == ("send_letter", 2, Level.HIGH)
    assert contract.effect_kind is EffectKind.EXTERNAL_EFFECT
    assert contract.recovery_class is RecoveryClass.IRREVERSIBLE
    assert contract.statuses == {409: Meaning.REFUSED}
    assert contract.retry[ErrorClass.TEMPORARY].max_attempts == 3
    assert contract.idempotency.support is KeySupport.IGNORED
    assert contract.status_query is not None
    assert contract.status_query.settle_s == 5
    assert contract.escalation.to == "Post room"
    assert contract.require_confirmation
    assert contract.secret_fields == ("/args/address",)


@pytest.mark.requirement("S0-81", "S0-35")
def test_a_compensation_says_who_what_first_and_what_stays() -> None:
    told = DOCUMENT["compensation"] | {
        "who": "approval",
        "preconditions": [
            {"text": "still booked", "read": "find_booking", "args": {"key": {"from": "forward_key"}},
             "pointer": "/state", "operator": "equals", "value": "booked"}
        ],
        "leaves": "A fee",
    }  # fmt: skip

    compensation = contract_from_document(document(compensation=told)).compensation

    assert isinstance(compensation, Compensation)
    assert compensation.who is Who.APPROVAL
    assert compensation.kind is CompensationKind.RESTORES
    assert compensation.preconditions[0].read == "find_booking"
    assert compensation.leaves == "A fee"


def test_a_definition_is_the_same_from_json_and_from_toml(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps(DEFINITION))
    definition = read_definition(tmp_path / "d.json")

    assert definition == definition_from_document(DEFINITION)
    assert definition.on_failure is OnFailure.HANDOFF
    assert definition.steps[0].on_rejected is OnFailure.CONTINUE
    assert isinstance(definition.end_states[0].conditions[0], StepIs)
    assert definition.end_states[0].conditions[1].text == "known"


def test_the_digest_is_of_the_content_and_not_of_its_spelling(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(DEFINITION))
    (tmp_path / "b.json").write_text(json.dumps(dict(reversed(DEFINITION.items())), indent=4))
    changed = copy.deepcopy(DEFINITION)
    changed["steps"][0]["why"] = "because"

    one, same = read_definition(tmp_path / "a.json"), read_definition(tmp_path / "b.json")

    assert one.digest == same.digest
    assert definition_from_document(changed).digest != one.digest
    assert definition_from_document(json.loads(json.dumps(one.document))).digest == one.digest


def test_all_problems_are_reported_at_once_each_on_its_line(tmp_path: Path) -> None:
    text = (
        CONTRACT.replace('level = "high"', 'level = "hihg"')
        .replace("version = 2", 'version = "2"')
        .replace("max_attempts = 3", "max_attempt = 3")
        .replace('question = "did the letter leave?"\n', "")
        .replace('method = "POST"', 'method = "SEND"')
        .replace('reference = "/letter"', 'reference = "letter"')
    )

    found = problems_of(tmp_path, text)

    assert [(one.line, one.where) for one in found] == [
        (2, "version"),
        (7, "level"),
        (8, "reference"),
        (13, "texts"),
        (19, "call.method"),
        (39, "retry.temporary"),
        (40, "retry.temporary.max_attempt"),
    ]
    assert all(one.message and one.remedy for one in found)
    assert "Did you mean `high`?" in found[1].remedy
    assert "Did you mean `max_attempts`?" in found[-1].remedy
    assert str(found[1]).startswith(f"{tmp_path / 'x.toml'}:7:1: level: ")


@pytest.mark.requirement("S0-13", "S0-82", "S0-33", "S4-4")
@pytest.mark.parametrize(
    ("changes", "where", "part"),
    [
        ({"effect_kind": "read_only"}, "recovery_class", "read-only"),
        ({"compensation": None}, "recovery_class", "declares its compensation"),
        ({"recovery_class": "irreversible"}, "recovery_class", "escalates"),
        ({"statuses": {"504": "temporary"}}, "statuses.504", "never widens"),
        ({"statuses": {"500": "confirmed"}}, "statuses.500", "never widens"),
        ({"statuses": {"200": "refused"}}, "statuses.200", "never widens"),
        ({"errors": {"codes": {"a": "refused"}}}, "errors.codes", "where an answer carries its code"),
        ({"errors": {"code": "/c", "codes": {"a": "confirmed"}}}, "errors.codes.a", "cannot mean"),
        ({"retry": {"permission": {"max_attempts": 3}}}, "retry.permission", "not repeated"),
        ({"limits": {"connect_s": 5, "total_s": 1}}, "limits.connect_s", "longer"),
        ({"reference": "/nothing"}, "reference", "nothing at /nothing"),
        ({"echo": "/nothing"}, "echo", "nothing at /nothing"),
        ({"args_schema": {"type": "strong"}}, "args_schema.type", "JSON Schema"),
        ({"result_schema": {"$ref": "https://example.com/x"}}, "result_schema.$ref", "outside of this file"),
        ({"texts": DOCUMENT["texts"] | {"done": "{args.nothing}"}}, "texts.done", "declared by no schema"),
        ({"call": DOCUMENT["call"] | {"path": "/x/{hotel}"}}, "call.path", "`hotel`"),
        ({"call": DOCUMENT["call"] | {"path": "/x/{room"}}, "call.path", "brace"),
        ({"call": DOCUMENT["call"] | {"headers": {"Host": "x"}}}, "call.headers.Host", "Host"),
        ({"call": DOCUMENT["call"] | {"body": {"from": "result"}}}, "call.body", "not known at this place"),
        (
            {"call": DOCUMENT["call"] | {"body": {"from": "args", "pointer": "night"}}},
            "call.body",
            "JSON pointer",
        ),
        (
            {"call": DOCUMENT["call"] | {"body": {"a": {"from": "args", "pointer": "/x"}}}},
            "call.body.a",
            "/x",
        ),
        (
            {
                "compensation": DOCUMENT["compensation"]
                | {"args": {"b": {"from": "result", "pointer": "/no"}}}
            },
            "compensation.args.b",
            "nothing at /no",
        ),
        ({"succeeded_when": {"text": "t", "operator": "equals"}}, "succeeded_when", "needs a value"),
        ({"succeeded_when": {"text": "t", "value": 1}}, "succeeded_when.value", "compares with nothing"),
        ({"succeeded_when": {"text": "t", "read": "x"}}, "succeeded_when.read", "answer at hand"),
    ],
)
def test_what_does_not_agree_is_named(changes: dict[str, Any], where: str, part: str) -> None:
    with pytest.raises(FileProblems) as caught:
        contract_from_document(document(**changes))

    assert where in [one.where for one in caught.value.problems]
    assert part in str(caught.value)
    assert all(one.line == 0 for one in caught.value.problems)


@pytest.mark.requirement("S4-4", "S0-33")
def test_repeating_without_an_answer_needs_a_key_or_a_question() -> None:
    unsafe = document(idempotency={"support": "ignored"}, retry={"no_answer": {"max_attempts": 3}})

    with pytest.raises(FileProblems, match="take effect twice"):
        contract_from_document(unsafe)
    contract_from_document(unsafe | {"idempotency": {"support": "honoured"}})
    query = {"tool": "find_booking", "args": {}, "found": {"text": "t", "pointer": "/booking"}}
    contract_from_document(unsafe | {"status_query": query})


@pytest.mark.parametrize(
    ("name", "raw", "line", "part"),
    [
        ("tool.toml", b'tool = "x"\nversion = = 1\n', 2, "Invalid value"),
        ("tool.json", b'{"tool": "x",\n "version": }', 2, "a value is expected"),
        ("tool.toml", b'tool = "x"\n# \xff\n', 2, "not UTF-8"),
        ("tool.yaml", b"tool: x", 1, "neither .toml nor .json"),
        ("tool.json", b"[1, 2]", 1, "table of names and values"),
        ("tool.json", b"[" * 100_000, 1, "nested deeper"),
        ("tool.toml", b"a = " + b"[" * 100_000, 1, ""),
        ("tool.toml", b"version = 2031-05-01", 1, "is a date or time"),
        ("tool.toml", b"version = nan", 1, "no number with an exact form"),
        ("tool.json", b'{"version": 99999999999999999999}', 1, "no number with an exact form"),
        ("tool.json", b'{"tool": "a\\u0000b"}', 1, "cannot be stored"),
        ("tool.json", b'{"tool": "\\ud800"}', 1, "cannot be stored"),
        ("tool.json", b"", 1, "ends too early"),
        ("tool.toml", b"", 1, "is missing"),
    ],
)
def test_an_unusable_file_is_refused_with_its_line(
    tmp_path: Path, name: str, raw: bytes, line: int, part: str
) -> None:
    (tmp_path / name).write_bytes(raw)

    with pytest.raises(FileProblems) as caught:
        read_contract(tmp_path / name)

    assert caught.value.problems[0].line == line
    assert part in str(caught.value)


def test_a_duplicate_name_in_json_is_a_problem_beside_the_others(tmp_path: Path) -> None:
    text = json.dumps(READ, indent=1).replace('"version": 1,', '"version": 1,\n "version": 2,', 1)

    found = problems_of(tmp_path, text, "tool.json")

    assert [(one.line, one.where) for one in found] == [(4, "version")]


@pytest.mark.parametrize(
    ("changes", "where", "part"),
    [
        ({"steps": [DEFINITION["steps"][0], DEFINITION["steps"][0]]}, "steps[1].id", "already"),
        ({"steps": []}, "steps", "must not be empty"),
        ({"input_schema": {"type": 3}}, "input_schema.type", "JSON Schema"),
        ({"business": {"reference": {"from": "key"}}}, "business.reference", "input alone"),
        ({"business": {"customer": {"from": "input", "pointer": "/no"}}}, "business.customer", "at /no"),
        ({"on_failure": "rollback"}, "on_failure", "not allowed"),
        ({"deadlines": {"default": 0}}, "deadlines.default", "out of range"),
        ({"end_states": [{"id": "a", "title": "a", "conditions": [{"step": "letter", "text": "t",
          "states": ["done"]}]}]}, "end_states[0].conditions[0].states[0]", "not allowed"),
        ({"end_states": [{"id": "a", "title": "a", "conditions": [{"text": "t", "operator": "at_most",
          "value": "1"}]}]}, "end_states[0].conditions[0].value", "a number"),
    ],
)  # fmt: skip
def test_a_definition_that_does_not_agree_is_named(changes: dict[str, Any], where: str, part: str) -> None:
    with pytest.raises(FileProblems) as caught:
        definition_from_document(DEFINITION | changes)

    assert where in [one.where for one in caught.value.problems]
    assert part in str(caught.value)
