"""The tables of docs/drills.md: every word of a drill file with its fields, out of the schema itself.

`python -m tools.drills.guide` writes them, with `--check` it fails when they are out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools import drill_words as words
from tools.contract import Json
from tools.drill_schema import DRILL_SCHEMA

PAGE = Path(__file__).resolve().parents[2] / "docs" / "drills.md"
MARK = "<!-- what follows is written by python -m tools.drills.guide -->\n"
_SHARED = frozenset({"run", "runs", "at", "text", "note", "id", "what", "claim"})


def tables() -> str:
    """The generated half of the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    definitions = DRILL_SCHEMA["$defs"]
    scenario = DRILL_SCHEMA["properties"]["scenario"]["properties"]
    yield "## Fields of a step\n"
    yield from _fields(definitions["step"])
    yield "\n`compensation`:\n"
    yield from _fields(definitions["step"]["properties"]["compensation"]["else"])
    for title, known in (
        ("Class of a step", words.CLASSES),
        ("What a failure leads to", words.ON_FAILURE),
        ("What the system does with a key", words.KEYS),
        ("How the system can be asked", words.QUERIES),
    ):
        yield f"\n### {title}\n"
        yield from _words(known)
    yield "\n## What the other side does: `downstream`\n"
    yield from _fields(scenario["downstream"]["items"])
    for title, known in (
        ("behaviour", words.BEHAVIOURS),
        ("kind (of garbage)", words.GARBAGE),
        ("items (of partial)", words.ITEM_ANSWERS),
        ("answer.verdict (of a query)", words.ANSWERS),
    ):
        yield f"\n### {title}\n"
        yield from _words(known)
    yield "\n## Moments: `at`, `since`\n"
    yield from _words(words.MOMENTS)
    yield "\n## What goes wrong: `faults`\n"
    yield from _tagged(definitions["fault"], "what", words.FAULTS)
    yield "\n### process\n"
    yield from _words(words.PROCESSES)
    yield "\n### of (store_refuses, commit_delayed)\n"
    yield from _words(words.STORED)
    yield "\n## What people ask for: `commands`\n"
    yield from _fields(scenario["commands"]["items"])
    yield "\n### command\n"
    yield from _words(words.COMMANDS)
    yield "\n### expected_result\n"
    yield from _words(words.RESULTS)
    yield "\n## What must hold: `expected`\n"
    yield from _fields(DRILL_SCHEMA["properties"]["expected"])
    yield "\n### Fields of `handoff`\n"
    yield from _fields(definitions["handoff"])
    yield "\n### Claims: `must_not`, `also`\n"
    yield from _tagged(definitions["claim"], "claim", words.CLAIMS)
    yield "\n### Marks in time: `from`, `to`, `before`, `after`\n"
    yield from _words(words.MARKS)
    yield "\n### page\n"
    yield from _words(words.PAGES)
    yield "\n### Entries: `action`, `entry`\n"
    yield "`COMMAND.accepted` and `COMMAND.refused` for every command, and:\n"
    yield ", ".join(f"`{word}`" for word in words.ENTRIES)


def _words(known: Mapping[str, str]) -> Iterator[str]:
    yield "| word | meaning |"
    yield "|---|---|"
    for word, meaning in known.items():
        yield f"| `{word}` | {meaning} |"


def _fields(schema: Json) -> Iterator[str]:
    yield "| field | meaning |"
    yield "|---|---|"
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        yield f"| `{name}`{' *' if name in required else ''} | {_meaning(field)} |"


def _meaning(field: Json) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return str(DRILL_SCHEMA["$defs"][name].get("description", name)).replace("|", "or")
    return str(field.get("description", "")).replace("|", "or") or "as written"


def _tagged(schema: Json, tag: str, known: Mapping[str, str]) -> Iterator[str]:
    yield "| word | meaning | its own fields (* needed) |"
    yield "|---|---|---|"
    for branch in schema["allOf"]:
        word = branch["if"]["properties"][tag]["const"]
        shape = branch["then"]
        own = [
            f"`{name}`{' *' if name in shape['required'] else ''}"
            for name in shape["properties"]
            if name not in _SHARED or (name in shape["required"] and name != tag)
        ]
        yield f"| `{word}` | {known[word]} | {', '.join(own) or 'none'} |"


def page(text: str) -> str:
    """The page with its tables brought up to date."""
    return text.partition(MARK)[0] + MARK + "\n" + tables()


def main(arguments: list[str]) -> int:
    """Write the tables, or with `--check` only compare them."""
    before = PAGE.read_text("utf-8")
    if "--check" in arguments:
        if page(before) != before:
            sys.stderr.write("docs/drills.md is out of date: run python -m tools.drills.guide\n")
            return 1
        return 0
    PAGE.write_text(page(before), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
