"""Answers that come by themselves: who sent one, and what it says, under the contract of its tool.

Pure; the store of what arrived is the engine's.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tools.contract import Contract, Json, Meaning
from tools.outcome import Verdict
from tools.pointers import MISSING, find

WINDOW_S = 300.0
"""A signature older or newer than this proves nothing."""

_HEADER = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")
_DENIED = frozenset(
    {Meaning.REFUSED, Meaning.VALIDATION, Meaning.PERMISSION, Meaning.CONFLICT, Meaning.NOT_FOUND}
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a callback says of a call, in the sender's own order (`at`, `version`)."""

    key: str
    reference: str
    verdict: Verdict
    detail: str
    at: datetime | None
    version: str
    result: Json


def signature(secret: str, at: int, raw: bytes) -> str:
    """The header that proves the sender: HMAC-SHA256 over the time (whole seconds), a dot and the raw body."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + raw, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def is_genuine(secret: str, header: str, raw: bytes, *, now: datetime) -> bool:
    """Whether the header was made with the secret over this very body, within the window. Constant time."""
    found = _HEADER.fullmatch(header.strip())
    if found is None or not secret:
        return False
    at = int(found[1])
    if abs(now.timestamp() - at) > WINDOW_S:
        return False
    return hmac.compare_digest(signature(secret, at, raw), header.strip())


def read(contract: Contract, document: Json) -> Said | None:
    """What a callback's body says; None when it names no call of ours. A state without a meaning proves nothing."""
    rules = contract.callback
    if rules is None:
        return None
    key, reference = _text(document, rules.key), _text(document, rules.reference)
    if not key and not reference:
        return None
    state = _text(document, rules.state)
    meaning = rules.states.get(state, Meaning.UNKNOWN)
    verdict = (
        Verdict.FOUND
        if meaning is Meaning.CONFIRMED
        else Verdict.DENIED
        if meaning in _DENIED
        else Verdict.NO_ANSWER
    )
    result = find(document, rules.result) if rules.result else MISSING
    return Said(
        key=key,
        reference=reference,
        verdict=verdict,
        detail=f"the callback says {state!r}",
        at=_moment(_text(document, rules.at)),
        version=_text(document, rules.version),
        result=None if result is MISSING else result,
    )


def _text(document: Json, pointer: str) -> str:
    found = find(document, pointer) if pointer else MISSING
    return "" if found is MISSING or found is None else str(found)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
