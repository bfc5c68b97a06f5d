"""Idempotency keys: derived from run, step, item, operation and generation (law 10, S4-12).

Never from a clock or a random number. Two different inputs never give one key.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote

LONGEST = 200
_FORWARD_LONGEST = 190


def forward_key(run_ref: str, step: str, item: str | int | None, operation: str, generation: int) -> str:
    """The key of one forward call: readable ASCII of at most 200 characters, the same whenever asked.

    A part keeps letters, digits, `_` and `-`; everything else is percent-encoded, so the dots between the
    parts stay unambiguous. A key that would be too long ends in a digest of the whole instead.
    """
    middle = [] if item is None or item == "" else [str(item)]
    key = ".".join([*map(_part, [run_ref, step, *middle, operation]), f"g{generation}"])
    return _bounded(key, _FORWARD_LONGEST)


def compensation_key(forward: str) -> str:
    """The key of the call that makes up for `forward`: derived from it, never equal to any forward key.

    `~` occurs in no part of a forward key (S2-15).
    """
    return _bounded(forward, _FORWARD_LONGEST) + "~c"


def _part(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass").replace(".", "%2E").replace("~", "%7E")


def _bounded(key: str, longest: int) -> str:
    if len(key) <= longest:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    return f"{key[: longest - 42]}~h{digest}"
