"""Keys of pages: what a list gives for the page after this one, and takes back. Every list pages by key."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime


def page_key(at: datetime | None, pk: int) -> str:
    """The key of the page that follows a row with this time and number."""
    text = f"{at.isoformat() if at else ''}|{pk}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_page_key(text: str) -> tuple[datetime, int]:
    """The row that a page follows. Raises `ValueError`."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        at, _, pk = raw.rpartition("|")
        return datetime.fromisoformat(at), int(pk)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise ValueError("this is not the key of a page") from None


def read_number(text: str) -> int:
    """The number of the row that a page follows. Raises `ValueError`."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError("this is not the key of a page")
    return int(text)
