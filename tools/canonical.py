"""Canonical JSON (RFC 8785) and the digest that pins a document."""

from __future__ import annotations

import hashlib
import json

import rfc8785

from tools.contract import Json


class NotCanonical(ValueError):
    """The document holds a value without a canonical form: no JSON, or a number beyond 2^53."""


def canonical(document: Json) -> bytes:
    """The one byte string of a document. Raises `NotCanonical`."""
    try:
        return rfc8785.dumps(document)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise NotCanonical(str(error)) from None


def digest(document: Json) -> str:
    """SHA-256 over the canonical form, hexadecimal."""
    return hashlib.sha256(canonical(document)).hexdigest()


def fingerprint(document: Json) -> str:
    """SHA-256 of any JSON value, hexadecimal: the digest, or, for a number beyond 2^53, that of its sorted text.

    For telling contents apart within one store; what others compute as well is pinned by `digest`.
    """
    try:
        return digest(document)
    except NotCanonical:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
