"""The published JSON Schemas are those that files are checked against."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.unit.tools.samples import DOCUMENT
from tests.unit.tools.test_reader import DEFINITION
from tools.schemas import CONTRACT_SCHEMA, DEFINITION_SCHEMA, FOLDER, PUBLISHED, main, stale


def test_the_published_schemas_are_those_that_files_are_checked_against() -> None:
    assert stale() == []
    assert json.loads((FOLDER / "contract.schema.json").read_text("utf-8")) == CONTRACT_SCHEMA
    assert main(["--check"]) == 0


def test_a_missing_or_changed_schema_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "contract.schema.json").write_text("{}")

    assert stale(tmp_path) == list(PUBLISHED)


def test_the_published_schemas_accept_what_the_reader_accepts() -> None:
    for schema, sound in ((CONTRACT_SCHEMA, DOCUMENT), (DEFINITION_SCHEMA, DEFINITION)):
        Draft202012Validator.check_schema(schema)
        assert list(Draft202012Validator(schema).iter_errors(sound)) == []
        assert list(Draft202012Validator(schema).iter_errors(sound | {"unheard_of": 1}))
