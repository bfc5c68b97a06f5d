"""Masks secrets before anything is stored or shown.

Three nets: the contract's secret fields, names that always mean a secret, and values that look like one.
Masking too much is a nuisance, masking too little a leak: in doubt it masks.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from urllib.parse import quote, quote_plus

from tools.contract import Json
from tools.pointers import is_pointer, parts, pointer_to

MASK = "[masked]"
_SHORTEST_SECRET = 4

_SECRET_NAMES = frozenset(
    {"password", "passwd", "passphrase", "secret", "clientsecret", "apikey", "privatekey", "cvv", "cvc"}
    | {"accesstoken", "refreshtoken", "idtoken", "sessiontoken", "cookie", "setcookie"}
)
_PEM = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
_VENDOR = r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abposr]-[A-Za-z0-9-]{10,}"
_NOT_A_LETTER = re.compile(r"[^a-z]")
_DETECTORS = tuple(
    (re.compile(pattern, re.ASCII), replacement)
    for pattern, replacement in (
        (_PEM, MASK),
        (r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", MASK),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", rf"\1 {MASK}"),
        (r"\b(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{8,}", MASK),
        (_VENDOR, MASK),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
        (r"([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@]{0,200}):[^\s/@]{1,200}@", rf"\1:{MASK}@"),
        (
            r"(?i)\b(pass(?:word|wd|phrase)|secret|api[_-]?key|access[_-]?token|client[_-]?secret)"
            r"(\"?\s*[=:]\s*\"?)[^\s\"',;&}]{1,500}",
            rf"\1\2{MASK}",
        ),
    )
)
_CARD = re.compile(r"(?<![\dA-Za-z_-])(?<!\d\.)(?:\d[ -]?){12,18}\d(?![\dA-Za-z_-])", re.ASCII)
_ISSUER = re.compile(r"4|5[1-5]|2[2-7]|3[47]|35|6011|65|64[4-9]")


def mask(value: Json, secret_fields: Iterable[str] = ()) -> Json:
    """A copy without secrets. `secret_fields` are JSON pointers; a segment `*` stands for any name or index.

    A field under `/args` or `/result` also counts when `value` is the arguments or the result itself.
    """
    return _mask(value, _branches(secret_fields))


def restored(given: Json, stored: Json, secret_fields: Iterable[str] = ()) -> tuple[Json, tuple[str, ...]]:
    """What a person made of a masked copy of `stored`, with the secrets back where they were left untouched.

    Also the JSON pointers of places that show the mask where `stored` has nothing that is masked.
    """
    misplaced: list[str] = []
    value = _restored(given, stored, mask(stored, secret_fields), (), misplaced)
    return value, tuple(misplaced)


def _restored(given: Json, stored: Json, shown: Json, path: tuple[str, ...], misplaced: list[str]) -> Json:
    if given == shown and type(given) is type(shown):
        return stored
    if isinstance(given, dict):
        here = stored if isinstance(stored, dict) else {}
        seen = shown if isinstance(shown, dict) else {}
        names = dict(zip(seen, here, strict=False))
        return {
            names.get(name, name): _restored(
                part, here.get(names.get(name, name)), seen.get(name), (*path, name), misplaced
            )
            for name, part in given.items()
        }
    if isinstance(given, list):
        old = stored if isinstance(stored, list) else []
        seen_parts = shown if isinstance(shown, list) else []
        pairs = zip_longest(given, old[: len(given)], seen_parts[: len(given)])
        return [
            _restored(part, was, saw, (*path, str(index)), misplaced)
            for index, (part, was, saw) in enumerate(pairs)
        ]
    if isinstance(given, str) and MASK in given:
        misplaced.append(pointer_to(path))
    return given


def mask_text(text: str) -> str:
    """A text with everything in it that looks like a secret masked."""
    for pattern, replacement in _DETECTORS:
        text = pattern.sub(replacement, text)
    return _CARD.sub(_without_card, text)


def own_secrets(args: Json, secret_fields: Iterable[str]) -> tuple[str, ...]:
    """Every form in which the secret values of these arguments may be said back: as they are, in base64, in hex, in URLs.

    Longest first. Values under four characters are too common in other words to be looked for.
    """
    plain = {text for text in _leaves(args, _branches(secret_fields)) if len(text) >= _SHORTEST_SECRET}
    return tuple(
        sorted({form for text in plain for form in _forms(text)}, key=lambda form: (-len(form), form))
    )


def without(value: Json, secrets: Iterable[str]) -> Json:
    """A copy in whose texts these secrets are masked, wherever they stand."""
    if isinstance(value, dict):
        return {without(name, secrets): without(part, secrets) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [without(part, secrets) for part in value]
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = value.replace(secret, MASK)
    return value


def _leaves(value: Json, branches: tuple[tuple[str, ...], ...], *, secret: bool = False) -> Iterator[str]:
    secret = secret or () in branches
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, _below(branches, name), secret=secret or _is_secret_name(name))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(part, _below(branches, str(index)), secret=secret)
    elif secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    raw = text.encode()
    yield text
    yield json.dumps(text)[1:-1]
    yield quote(text, safe="")
    yield quote_plus(text)
    yield base64.b64encode(raw).decode().rstrip("=")
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
    yield raw.hex()


def _branches(secret_fields: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    found: set[tuple[str, ...]] = set()
    for field in secret_fields:
        path = parts(field) if is_pointer(field) else (field,)
        found.add(path)
        if len(path) > 1 and path[0] in {"args", "result"}:
            found.add(path[1:])
    return tuple(sorted(found))


def _mask(value: Json, branches: tuple[tuple[str, ...], ...]) -> Json:
    if () in branches:
        return None if value is None else MASK
    if isinstance(value, dict):
        return {mask_text(name): _mask_member(name, part, branches) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(part, _below(branches, str(index))) for index, part in enumerate(value)]
    return mask_text(value) if isinstance(value, str) else value


def _mask_member(name: str, value: Json, branches: tuple[tuple[str, ...], ...]) -> Json:
    if _is_secret_name(name) and value is not None:
        return MASK
    return _mask(value, _below(branches, name))


def _below(branches: tuple[tuple[str, ...], ...], name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(path[1:] for path in branches if path and path[0] in {name, "*"})


def _is_secret_name(name: str) -> bool:
    return _NOT_A_LETTER.sub("", name.lower()) in _SECRET_NAMES


def _without_card(match: re.Match[str]) -> str:
    digits = [int(char) for char in match[0] if char.isdigit()]
    doubled = [number * 2 - 9 if number > 4 else number * 2 for number in digits[-2::-2]]
    valid = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return MASK if valid and _ISSUER.match("".join(map(str, digits))) else match[0]
