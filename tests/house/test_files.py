"""What every file of the project keeps to: no machine, no registry and no person in it, nothing left for later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.house.source import ROOT, sources, texts

HERE = "tests/house/"
# Copied as they are from where they come from; nobody here edits them.
COPIED = ("examples/sources/", "static/vendor/")

LONGEST = 400
LONGER_FOR_A_REASON = {
    "sagas/api.py": "the one door of the engine: every name that the people side may call",
    "sagas/planner.py": "one pure decision over all states; cut apart, no reader would see that it is complete",
    "sagas/facts.py": "every value that crosses the door, one list to read",
    "sagas/executor.py": "how a claimed run is driven: calls at once, lanes and leases share the threads",
    "sagas/ledger/advance.py": "one step of a claimed run, a branch for every decision of the planner",
    "sagas/ledger/desk.py": "the one place where rows move; its parts share the lock and the entries",
    "sagas/ledger/settle.py": "the only place where outcomes become states of an action",
    "sagas/ledger/verbs.py": "what a person's verb does to a run, on one desk",
    "tools/drill_schema.py": "the form of a drill file as data",
    "tools/drills/translate.py": "every field of the product's documents that a drill's step becomes, in one place",
    "workbench/labs/drills/claims.py": "every claim that a drill may make, a short function each",
    "workbench/labs/drills/player.py": "one loop: moments, commands, gates and clock rest on what was seen last",
    "workbench/web/presenters/signoff_sheet.py": "the one sheet that a signature is given on, part by part",
    "workbench/policies.py": "the only permission code: every reason why not, in the order in which they are asked",
    "tools/schemas.py": "two JSON Schemas as data",
}
LONGEST_TEST = 500
LONGEST_TEMPLATE = 150
WIDEST_TEMPLATE_LINE = 220  # a sentence to translate cannot be broken

_MACHINE_PATH = re.compile(r"(?<![\w.:/])(?:/home/|/Users/|/root/|/[w]ork/|[A-Z]:\\Users\\)")
_URL = re.compile(r"\b(?:https?|ftp|postgresql|redis)://(?:[^\s/@\"'`]*@)?([A-Za-z0-9][A-Za-z0-9.-]*)")
_MAIL = re.compile(r"\b[\w.+-]+@([\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,})\b")
_FOR_LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
# Hosts that name a vocabulary or nothing at all: nothing is ever fetched from them.
_FREE_HOSTS = {"127.0.0.1", "www.w3.org", "json-schema.org"}
_NOBODYS = re.compile(
    r"(?:^|\.)(?:example|invalid|test|internal|localhost)$|(?:^|\.)example\.(?:com|org|net)$"
)


def lines(*, but: tuple[str, ...] = (HERE,)) -> Iterator[tuple[str, str]]:
    """Every line of every text file with its place."""
    for name, text in texts().items():
        if not name.startswith(but):
            yield from ((f"{name}:{number}", line) for number, line in enumerate(text.splitlines(), 1))


def foreign(host: str) -> bool:
    """Whether a host could be somebody's."""
    return "." in host and host not in _FREE_HOSTS and not _NOBODYS.search(host)


def test_no_file_knows_the_machine_that_it_was_written_on() -> None:
    assert [place for place, line in lines() if _MACHINE_PATH.search(line)] == []


def test_no_file_names_a_host_that_belongs_to_somebody() -> None:
    named = [
        (place, host)
        for place, line in lines(but=(HERE, *COPIED))
        for host in _URL.findall(line)
        if foreign(host)
    ]

    assert named == []


def test_the_locks_name_packages_and_digests_only() -> None:
    wanted = re.compile(
        r"(?:[a-z0-9][\w.-]*(?:\[[\w,-]+\])?==\S+(?: ; .+)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?)?"
    )
    odd = [
        place for place, line in lines() if place.startswith("requirements/") and not wanted.fullmatch(line)
    ]

    assert odd == []


def test_no_address_could_be_a_persons() -> None:
    named = [
        (place, host) for place, line in lines() for host in _MAIL.findall(line) if not _NOBODYS.search(host)
    ]

    assert named == []


def test_nothing_is_left_for_later_in_the_code() -> None:
    assert [place for place, line in lines(but=(HERE, *COPIED)) if _FOR_LATER.search(line)] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (_MACHINE_PATH, "open('/home/somebody/amends')"),
        (_URL, "https://files.registry.io/simple"),
        (_MAIL, "someone@company.com"),
        (_FOR_LATER, "# TODO: later"),
    ],
)
def test_the_patterns_notice_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    found = pattern.search(text)

    assert found
    assert not found.groups() or foreign(found.group(1))


def test_files_are_short_or_say_why_not() -> None:
    long = {s.name for s in sources() if s.text.count("\n") > LONGEST}

    assert long == set(LONGER_FOR_A_REASON), "either cut it, or take it off the list again"
    assert [s.name for s in sources("tests") if s.text.count("\n") > LONGEST_TEST] == []


def test_templates_are_short() -> None:
    templates = {name: text.splitlines() for name, text in texts().items() if name.startswith("templates/")}

    assert templates
    assert [name for name, rows in templates.items() if len(rows) >= LONGEST_TEMPLATE] == []
    assert [
        name for name, rows in templates.items() if max(map(len, rows), default=0) > WIDEST_TEMPLATE_LINE
    ] == []


def test_pages_hold_no_script_and_no_style_of_their_own() -> None:
    inline = re.compile(r"<style|<script(?![^>]*\bsrc=)|\bstyle=|\bon[a-z]+=[\"']|javascript:", re.IGNORECASE)
    broken = [place for place, line in lines() if place.startswith("templates/") and inline.search(line)]

    assert broken == []


def test_no_word_for_compensation_promises_to_turn_back_time() -> None:
    """Buttons, texts and verbs say compensate, or stop and compensate (requirements, decision 8)."""
    misleading = re.compile(r"\b(?:undo(?:es|ne)?|roll(?:ed)?[ -]?back|redrive|terminate)\b", re.IGNORECASE)
    shown = ("templates/", "static/js/", "locale/", "workbench/web/", "workbench/commands/", "tools/catalog/")
    broken = [place for place, line in lines() if place.startswith(shown) and misleading.search(line)]

    assert broken == []


def test_the_reader_finds_files_of_every_kind() -> None:
    kinds = {name.rpartition(".")[2] for name in texts()}

    assert {"py", "md", "toml", "html", "css", "js", "txt"} <= kinds
    assert "README.md" in texts()


def test_what_was_taken_from_others_is_what_its_digest_says_and_comes_with_a_licence() -> None:
    folder = ROOT / "static" / "vendor"
    lines_ = (folder / "SHA256SUMS").read_text("utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines_)}
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    taken = {name: path for name, path in files.items() if "/" in name}

    assert sums == {name: sha256(path.read_bytes()).hexdigest() for name, path in taken.items()}
    assert {name.partition("/")[0] for name in taken} == {
        path.parent.name for name, path in taken.items() if path.name == "LICENSE"
    }
