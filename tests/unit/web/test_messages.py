"""English and Simplified Chinese are complete, and what Django reads is what people edited."""

from __future__ import annotations

import re

from workbench.labs import messages

HOLES = re.compile(r"%\(\w+\)s|\{\w+\}")


def test_no_sentence_is_untranslated_and_the_compiled_file_is_current() -> None:
    assert messages.problems() == []


def test_a_translation_keeps_every_named_part() -> None:
    lost = []
    for message in messages.stored("zh_Hans"):
        source = message.id if isinstance(message.id, str) else message.id[-1]
        target = "".join(message.string or "")
        if message.id and set(HOLES.findall(source)) != set(HOLES.findall(target)):
            lost.append(source)
    assert lost == []


def test_compensation_is_never_called_undoing() -> None:
    gathered = messages.gather()

    said = [str(message.id) for message in gathered if message.id]
    assert [
        line for line in said if re.search(r"\b(undo|undone|roll ?back|cancel|reset)\b", line, re.IGNORECASE)
    ] == []
