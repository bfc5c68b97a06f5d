"""Sentences of refusals: the words of the engine's obstacles and times in the reader's zone."""

import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from django.utils import timezone, translation
from django.utils.translation import gettext_lazy as _

from sagas import obstacles
from sagas.facts import Obstacle
from workbench.errors import OBSTACLES, Moment, Sentence, in_words


def test_a_sentence_is_told_in_the_readers_language_and_kept_in_english() -> None:
    sentence = Sentence(_("English"))

    with translation.override("zh-hans"):
        kept = sentence.plain()

    assert kept == "English"


def test_a_moment_is_told_in_the_readers_zone_with_the_day_when_it_is_another() -> None:
    at = datetime(2026, 3, 2, 23, 30, 5, tzinfo=UTC)

    with timezone.override(ZoneInfo("Asia/Shanghai")):
        told = [
            str(Moment(at)),
            str(Moment(at, seconds=True)),
            str(Moment(at, datetime(2026, 3, 2, 9, 0, tzinfo=UTC))),
        ]

    assert told == ["07:30", "07:30:05", "2026-03-03 07:30"]


def test_every_reason_of_the_engine_has_its_words() -> None:
    source = Path(obstacles.__file__).read_text()
    codes = set(re.findall(r'_why\(\s*"([a-z_]+)"', source))

    assert codes
    assert codes <= set(OBSTACLES), codes - set(OBSTACLES)


def test_a_reason_without_words_keeps_the_engines_own() -> None:
    assert str(in_words(Obstacle(code="brand_new", sentence="100% new."))) == "100% new."


def test_the_times_of_an_obstacle_are_told_in_the_readers_zone() -> None:
    at = datetime(2026, 3, 2, 23, 30, 5, tzinfo=UTC)
    obstacle = Obstacle(
        code="paused_already", sentence="Maya did.", params={"who": "Maya", "time": at.isoformat()}
    )

    with timezone.override(ZoneInfo("Asia/Shanghai")):
        told = str(in_words(obstacle))

    assert told == "Maya paused the compensation at 07:30:05."
    assert in_words(obstacle).plain() == "Maya paused the compensation at 23:30:05."
