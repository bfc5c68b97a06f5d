"""Drill files: what is read of them, what is said about a wrong one, and what becomes of their steps."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tools import drill_words as words
from tools import lint
from tools.drill_schema import DRILL_SCHEMA
from tools.drills import guide
from tools.drills.drill import Drill
from tools.drills.reader import drill_from_document, read_drill
from tools.drills.translate import changed, input_of, translated
from tools.problems import FileProblems
from tools.reader import contract_from_document, definition_from_document

EXAMPLE: dict[str, Any] = json.loads(
    guide.PAGE.read_text("utf-8").partition("```json\n")[2].partition("\n```")[0]
)


def example(**scenario: Any) -> dict[str, Any]:
    """The guide's drill with parts of its scenario replaced."""
    document = copy.deepcopy(EXAMPLE)
    document["scenario"] |= scenario
    return document


def said(document: dict[str, Any], folder: Path) -> list[str]:
    """What is said of a wrong drill: line, place and message of each problem."""
    path = folder / "drill.json"
    path.write_text(json.dumps(document, indent=1))
    with pytest.raises(FileProblems) as caught:
        read_drill(path)
    lines = path.read_text().splitlines()
    return [
        f"{lines[problem.line - 1].strip()} -> {problem.where}: {problem.message}. {problem.remedy}"
        for problem in caught.value.problems
    ]


def test_the_guides_drill_is_read() -> None:
    drill = drill_from_document(EXAMPLE)

    assert [step.id for step in drill.steps] == ["s1", "s2"]
    assert drill.steps[0].compensation is not None
    assert [run.id for run in drill.runs] == ["W"]


def test_an_unknown_word_is_named_on_its_line_with_the_words_there_are(tmp_path: Path) -> None:
    (only,) = said(example(faults=[{"what": "explode", "at": {"t": 3}}]), tmp_path)

    assert only.startswith('"what": "explode", -> scenario.faults[0].what: `explode` is not allowed')
    assert all(word in only for word in words.FAULTS)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    wrong = example(
        downstream=[{"on": "s3.do", "attempt": 1, "behaviour": "ok"}, {"on": "s2.undo", "behaviour": "ok"}],
        faults=[{"what": "note", "at": {"t": 1, "rest": True}}],
    )
    wrong["expected"]["actions"] = {"s9": "confirmed"}

    found = said(wrong, tmp_path)

    parts = ("no step `s3`", "s2 has no compensation", "is 2 moments: t, rest", "no step `s9`")
    assert [part for part in parts if not any(part in line for line in found)] == []
    assert len(found) == 4


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (
            {"commands": [{"order": 1, "actor": "op", "command": "retry", "expected_result": "accepted"}]},
            "no actor `op`",
        ),
        ({"runs": [{"id": "A"}, {"id": "A"}]}, "`A` is the id of runs[0] already"),
        ({"downstream": [{"on": "s1.do", "behaviour": "ok", "http": 500}]}, "`http` says nothing about `ok`"),
        ({"faults": [{"what": "kill", "process": "owner", "at": {"action": "s1"}}]}, "`is` is missing"),
        ({"faults": [{"what": "kill"}]}, "`process` is missing"),
        ({"downstream": [{"on": "s1.do", "run": "B", "behaviour": "ok"}]}, "no run `B`"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_said(scenario: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert message in " ".join(said(example(**scenario), tmp_path))


def test_every_word_of_the_vocabulary_has_fields_in_the_schema() -> None:
    for tag, name, known in (("what", "fault", words.FAULTS), ("claim", "claim", words.CLAIMS)):
        branches = [one["if"]["properties"][tag]["const"] for one in DRILL_SCHEMA["$defs"][name]["allOf"]]
        assert sorted(branches) == sorted(known)


def test_the_guide_names_every_word() -> None:
    text = guide.PAGE.read_text("utf-8")

    assert guide.page(text) == text
    every = {**words.BEHAVIOURS, **words.COMMANDS, **words.FAULTS, **words.CLAIMS, **words.MOMENTS}
    assert [word for word in every if f"`{word}`" not in text] == []


# --- Steps become documents of the product ------------------------------------------------------------------------------


def drill(*steps: dict[str, Any]) -> Drill:
    document = copy.deepcopy(EXAMPLE)
    document["scenario"] = {"workflow": {"steps": list(steps)}}
    document["expected"] = {}
    return drill_from_document(document)


def step(name: str, kind: str, **rules: Any) -> dict[str, Any]:
    undo = {"compensation": {"tool": f"undo_{name}"}} if kind == "compensable" else {}
    return {"id": name, "tool": f"tool_{name}", "class": kind, **undo, **rules}


@pytest.mark.parametrize("kind", words.CLASSES)
@pytest.mark.parametrize("key", words.KEYS)
@pytest.mark.parametrize("query", words.QUERIES)
def test_steps_of_every_kind_become_sound_contracts_and_a_sound_definition(
    kind: str, key: str, query: str
) -> None:
    plain = step("s1", kind, downstream_key=key, status_query=query, max_attempts=2)
    more = [
        step("s2", kind, downstream_key=key, status_query=query, items=["a", "b"]),
        step("s3", kind, downstream_key=key, status_query=query, loop=["a", "b"], uses_output_of=["s1"]),
        step("s4", kind, downstream_key=key, status_query=query, asynchronous=True),
    ]
    made = translated(drill(plain, *more), prefix="t1", gated=frozenset())

    contracts = {one["tool"]: contract_from_document(one) for one in made.contracts}
    definition = definition_from_document(made.definition)
    broken = [one for one in lint.check(definition, contracts) if one.code.startswith("W0")]
    assert broken == []
    assert {tool["tool"] for tool in made.tools} == set(contracts)


def test_names_are_the_drills_own() -> None:
    one, other = (
        translated(drill(step("s1", "compensable")), prefix=prefix, gated=frozenset())
        for prefix in ("a1", "b2")
    )

    assert not {tool["tool"] for tool in one.tools} & {tool["tool"] for tool in other.tools}
    assert one.definition["name"] != other.definition["name"]


def test_a_change_removes_inserts_and_makes_up_otherwise() -> None:
    steps = drill(step("s1", "compensable"), step("s2", "idempotent"), step("s3", "irreversible")).steps

    after = changed(
        steps,
        {
            "compensation_tool": {"s1": "other"},
            "remove_steps": ["s2"],
            "insert_steps": [step("s4", "read")],
            "before": "s3",
        },
    )

    assert [one.id for one in after] == ["s1", "s4", "s3"]
    assert after[0].compensation is not None
    assert after[0].compensation.tool == "other"


def test_the_input_names_what_each_call_is_about() -> None:
    steps = drill(step("s1", "idempotent"), step("s2", "irreversible", items=["a", "b"])).steps

    given = input_of("t1-W-0001", steps)

    assert given["about"] == {"s1": "t1-W-0001.s1.", "s2": "t1-W-0001.s2."}
    assert [item["about"] for item in given["many"]["s2"]] == ["t1-W-0001.s2.a", "t1-W-0001.s2.b"]
