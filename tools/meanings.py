"""What a status means without a contract's word, and what a contract may say about it (law 5)."""

from __future__ import annotations

from collections.abc import Mapping

from tools.contract import Meaning

DEFAULT_MEANINGS: Mapping[int, Meaning] = {
    202: Meaning.ACCEPTED,
    207: Meaning.PARTIAL,
    400: Meaning.VALIDATION,
    401: Meaning.CREDENTIAL,
    403: Meaning.PERMISSION,
    412: Meaning.CONFLICT,
    422: Meaning.VALIDATION,
    429: Meaning.THROTTLED,
}
"""Statuses that mean something without a contract's word. Other 2xx confirm; everything else is unknown."""

POSITIVE = frozenset({Meaning.CONFIRMED, Meaning.ACCEPTED, Meaning.PARTIAL})
_ALREADY_GONE = frozenset({404, 409, 410})
_NEVER_DEFINITE = frozenset({408, 502, 504})
_UNSETTLED = frozenset({Meaning.UNKNOWN, Meaning.IN_FLIGHT})


def may_mean(status: int, meaning: Meaning) -> bool:
    """Whether a contract may give a status this meaning: it narrows the table, it never widens it.

    A gateway's 408, 502 and 504 prove nothing whatever a contract says; a redirect or an error never
    confirms, except that 404, 409 and 410 may say "already gone" to a compensation; a 2xx never says
    "not executed".
    """
    if meaning in _UNSETTLED:
        return True
    if 200 <= status <= 299:
        return meaning in POSITIVE
    if status < 300 or status in _NEVER_DEFINITE:
        return False
    if meaning is Meaning.CONFIRMED:
        return status in _ALREADY_GONE
    return meaning not in POSITIVE
