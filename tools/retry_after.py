"""How long an answer asks us to wait."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 3600.0
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` header asks for, from 0 to an hour; None when absent or absurd in form.

    A date counts from the answer's own `Date`, so that the two clocks need not agree.
    """
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_S)
    until = _http_date(text)
    if until is None:
        return None
    since = now or _http_date(headers.get("date", "")) or datetime.now(UTC)
    seconds = (until - since).total_seconds()
    return min(max(seconds, 0.0), LONGEST_S) if math.isfinite(seconds) else None


def _http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
