"""docs/lint.md, made from the table of codes: `python -m tools.lint.page [--check]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.lint.codes import CODES, Code, Severity

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lint.md"

_HEAD = """\
# What the check says

`manage.py workflows check` and `publish` look at a definition together with the contracts of its tools. Every finding
has a code that keeps its meaning, a severity that is always the same, and a fix. This page is made from
`tools/lint/codes.py` by `python -m tools.lint.page`; a test fails when it is out of date.

- An **error** keeps a definition from being published. Some can be waived: `workflows publish PATH --waive W101
  --reason "…"` publishes all the same. The waiver is stored with the version, with its reason and who gave it, and
  leaves an entry (`definition.waived`). What could not be carried out at all cannot be waived.
- A **warning** keeps nothing back.

What is found in a tool's contract is said at each step that calls the tool. A position counts from 1; a step with
`held = true` is called after all others and counts as the last one.
"""

_SECTIONS = {
    "W0": "## W0: it could not be carried out\n\nErrors that no reason makes good.",
    "W1": "## W1: a failure could do harm\n\nErrors about what happens when a step fails.",
    "W2": "## W2: to think about\n\nWarnings.",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for prefix, head in _SECTIONS.items():
        yield head + "\n"
        yield "| code | finding | what could happen | fix | waivable |"
        yield "|---|---|---|---|---|"
        yield from (_row(code) for code in CODES.values() if code.code.startswith(prefix))
        yield ""


def _row(code: Code) -> str:
    waivable = "-" if code.severity is Severity.WARNING else "yes" if code.waivable else "no"
    return f"| {code.code} | {code.title} | {code.harm} | {code.fix} | {waivable} |"


def stale() -> bool:
    """Whether the stored page is missing or says something else."""
    return not PAGE.is_file() or PAGE.read_text("utf-8") != page()


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` only compare it."""
    if "--check" in arguments:
        if stale():
            sys.stderr.write("docs/lint.md is out of date: run python -m tools.lint.page\n")
        return int(stale())
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
