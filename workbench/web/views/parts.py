"""Small parts that several views send along with their own."""

from __future__ import annotations

from workbench.web.page import Reader, frame, part


def freeze_banner(reader: Reader) -> bytes:
    """The freeze banner for a page that shows an older one."""
    return part(reader, "components/freeze_slot.html", {"shell": frame(reader, "")}).content
