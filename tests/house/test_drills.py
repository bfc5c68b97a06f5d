"""The drills of tests/drills: all are sound, and the list of those that do not pass yet only gets shorter."""

from __future__ import annotations

from pathlib import Path

from tools.drills.reader import read_drill
from workbench.labs.drills.running import files, names_in

FOLDER = Path(__file__).resolve().parents[1] / "drills"
OPEN = FOLDER / "open.txt"
MOST_OPEN = 5
"""How many may be open. Whoever makes one pass takes it off the list and lowers this; it is never raised."""


def test_every_drill_is_sound_and_carries_the_name_of_its_file() -> None:
    odd = [path.name for path in files([FOLDER, FOLDER / "long"]) if read_drill(path).id != path.stem]

    assert odd == []


def test_what_is_open_is_there_and_no_more_than_before() -> None:
    listed = names_in(OPEN)

    assert sorted(listed - {path.name for path in files([FOLDER])}) == []
    assert len(listed) == MOST_OPEN
