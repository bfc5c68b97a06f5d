"""Untrusted text is shown, never obeyed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.web.presenters import text

pytestmark = pytest.mark.requirement("S3-13")


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\x1b", "ESC"),
        ("\x00", "NUL"),
        ("\u202e", "U+202E"),
        ("\u200b", "U+200B"),
        ("\u3164", "U+3164"),
        ("\r", "CR"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(char: str, shown: str) -> None:
    assert text.inert(f"a{char}b") == f'a<span class="vis">{shown}</span>b'


def test_a_title_shows_what_cannot_be_seen_without_markup_of_ours() -> None:
    assert text.plain("<b>a\x1b[31m\u202eb", 12) == "<b>a‹ESC›[31m‹U+202E›b"
    assert text.plain("x" * 13, 12) == "x" * 12 + "…"


def test_markup_stays_text() -> None:
    assert text.inert("<b onclick='x'>&\"") == "&lt;b onclick=&#x27;x&#x27;&gt;&amp;&quot;"


@given(st.text())
def test_no_text_gets_a_tag_or_a_steering_character_through(raw: str) -> None:
    shown = text.inert(raw, 10_000)

    without_ours = shown.replace('<span class="vis">', "").replace("</span>", "")
    assert "<" not in without_ours
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in shown if char != "\n")


def test_long_text_says_how_much_is_missing() -> None:
    assert text.inert("ä" * 12, 10).endswith('… <span class="cutoff">4 more bytes</span>')


def test_a_sentence_of_ours_keeps_its_parts_inert() -> None:
    assert text.say("{who} left", who="<i>") == "&lt;i&gt; left"


def test_a_sentence_without_parts_is_escaped_too() -> None:
    assert text.say("a < b") == "a &lt; b"
