"""Faults of a value against a JSON Schema: each with its place, never with the value."""

import pytest

from tools.declared import declares
from tools.json_schema import faults_of_schema, schema_fault, schema_faults

SCHEMA = {
    "type": "object",
    "required": ["order"],
    "properties": {
        "order": {"type": "string"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {},
        "either": {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
    },
    "$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
}


def test_a_fault_names_the_place_but_never_the_value() -> None:
    fault = schema_fault(SCHEMA, {"order": "O-1", "lines": [{"sku": 4711}]})

    assert "/lines/0/sku" in fault
    assert "4711" not in fault


def test_all_faults_are_listed_by_place() -> None:
    assert [where for where, _ in schema_faults(SCHEMA, {"lines": [{"sku": 1}, {"sku": 2}]})] == [
        "",
        "/lines/0/sku",
        "/lines/1/sku",
    ]


@pytest.mark.parametrize("reference", ["https://example.com/x", "other.json#/a"])
def test_a_reference_to_another_file_is_a_fault_and_is_never_fetched(reference: str) -> None:
    assert faults_of_schema({"$ref": reference})
    assert schema_fault({"$ref": reference}, {})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strong"},
        {"properties": 5},
        {"$ref": "#/nowhere"},
        {"pattern": "("},
        {"allOf": [{"type": 1}]},
    ],
)
def test_an_unsound_schema_is_found_before_it_is_used(schema: object) -> None:
    assert faults_of_schema(schema)


def test_a_sound_schema_has_no_faults() -> None:
    assert faults_of_schema(SCHEMA) == []


@pytest.mark.parametrize(
    ("pointer", "declared"),
    [
        ("", True),
        ("/order", True),
        ("/order/deeper", True),
        ("/nothing", False),
        ("/lines/0/sku", True),
        ("/lines/0/price", False),
        ("/extra/anything", True),
        ("/free/for/all", True),
        ("/either/a", True),
        ("/either/c", False),
    ],
)
def test_a_schema_that_lists_properties_is_taken_at_its_word(pointer: str, declared: bool) -> None:
    assert declares(SCHEMA, pointer) is declared


def test_a_schema_that_says_nothing_declares_everything() -> None:
    assert declares(None, "/x")
    assert declares({}, "/x")
    assert declares({"$ref": "#"}, "/x")
