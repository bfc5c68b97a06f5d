"""One thing that was looked at for a page: its mark, its words, when."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString


@dataclass(frozen=True, kw_only=True)
class Check:
    """Something checked while the preview was made."""

    icon: str
    says: SafeString
    at: str
