"""The Retry-After header as a bounded number of seconds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.retry_after import LONGEST_S, retry_after_s

NOW = datetime(2031, 5, 1, 10, 0, 0, tzinfo=UTC)


@pytest.mark.requirement("S4-5")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("Thu, 01 May 2031 10:00:30 GMT", 30.0),
        ("Thu, 01 May 2031 09:00:00 GMT", 0.0),
        ("Thu, 01 May 2099 10:00:00 GMT", LONGEST_S),
        ("99999999999999999999999999", LONGEST_S),
        ("9" * 400, LONGEST_S),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
    ],
)
def test_seconds_dates_and_absurd_values_are_bounded(header: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": header}, now=NOW) == seconds


def test_a_date_counts_from_the_answers_own_clock() -> None:
    headers = {"retry-after": "Thu, 01 May 2031 10:00:30 GMT", "date": "Thu, 01 May 2031 10:00:10 GMT"}

    assert retry_after_s(headers) == 20.0


@given(st.text())
def test_any_header_gives_a_bounded_wait_or_none(text: str) -> None:
    seconds = retry_after_s({"retry-after": text, "date": text})

    assert seconds is None or 0 <= seconds <= LONGEST_S
