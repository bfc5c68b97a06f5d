"""Secrets are masked before anything is stored or shown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.redact import MASK, mask, mask_text, own_secrets, without

SECRETS = [
    "Bearer 4f9aXq0Zk2LmN8",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "sk_live_4eC39HqLyjWDarjt",
    "AKIAIOSFODNN7EXAMPLE",
    "4111 1111 1111 1111",
    "4111111111111111",
    "password=hunter2hunter2",
    "postgres://user:pa55word@db.example/app",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "xoxb-123456789012-abcdefgh",
]


def test_a_declared_field_is_masked_wherever_it_stands() -> None:
    value = {"args": {"phone": "123", "people": [{"id": "A"}, {"id": "B"}], "order": "O-1"}}

    masked = mask(value, ["/args/phone", "/args/people/*/id"])

    assert masked == {"args": {"phone": MASK, "people": [{"id": MASK}, {"id": MASK}], "order": "O-1"}}
    assert value["args"]["phone"] == "123"


def test_a_declared_field_is_masked_in_the_arguments_alone_too() -> None:
    assert mask({"phone": "123", "order": "O-1"}, ["/args/phone"]) == {"phone": MASK, "order": "O-1"}


def test_a_whole_declared_branch_is_masked() -> None:
    assert mask({"args": {"card": {"no": "1", "name": "x"}}}, ["/args/card"]) == {"args": {"card": MASK}}


@pytest.mark.parametrize("name", ["password", "API-Key", "clientSecret", "access_token", "cvv"])
def test_a_name_that_always_means_a_secret_needs_no_declaration(name: str) -> None:
    assert mask({"deep": [{name: "x"}]}) == {"deep": [{name: MASK}]}


@pytest.mark.parametrize("secret", SECRETS)
def test_a_value_that_looks_like_a_secret_is_masked(secret: str) -> None:
    assert MASK in mask_text(f"the answer was {secret} at 12:00")
    core = secret.split("=")[-1].split(":")[-1].split("@")[0].split()[-1]
    assert core not in mask_text(f"the answer was {secret} at 12:00") or core == "KEY-----"


@pytest.mark.parametrize(
    "harmless",
    [
        "O-20931",
        "1234567890123456",
        "N-1",
        "2031-05-01T10:00:00Z",
        "R-1.s1.send.g1",
        "+49 30 901820",
        "SKU-7781",
    ],
)
def test_references_and_dates_stay_readable(harmless: str) -> None:
    assert mask({"reference": harmless}) == {"reference": harmless}


@given(st.sampled_from(SECRETS), st.text(alphabet=" .,;\n\u202e§ä"), st.text(alphabet=" .,;\n\u202e§ä"))
def test_no_planted_secret_survives_its_surroundings(secret: str, before: str, after: str) -> None:
    kept = json.dumps(mask({"list": [before + secret + after]}))

    assert secret not in kept
    assert json.dumps(secret)[1:-1] not in kept


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    )
)
def test_masking_keeps_the_shape(value: object) -> None:
    masked = mask(value, ["/a", "/*/b"])

    assert mask(masked, ["/a", "/*/b"]) == masked
    assert isinstance(masked, type(value)) or masked == MASK


def test_a_long_hostile_text_is_masked_in_good_time() -> None:
    for hostile in (
        "eyJ-" * 60_000,
        "a:" * 100_000,
        "password" * 30_000,
        "4 " * 100_000,
        "-----BEGIN " * 20_000,
    ):
        assert mask_text(hostile)


@pytest.mark.parametrize(
    "said",
    [
        "bad token TOP-SECRET-1!",
        "bad token VE9QLVNFQ1JFVC0x",
        "GET /x?token=TOP-SECRET-1&a=b",
        "seen: 544f502d5345435245542d31",
    ],
)
def test_an_error_that_says_our_own_secret_back_is_masked_in_every_form(said: str) -> None:
    secrets = own_secrets({"token": "TOP-SECRET-1", "note": "plain"}, ["/args/token"])

    shown: Any = without({"error": said, "more": [said, 7]}, secrets)

    assert MASK in shown["error"]
    assert "TOP-SECRET-1" not in str(shown)
    assert "VE9QLVNFQ1JFVC0x" not in str(shown)
    assert shown["more"][1] == 7


def test_what_is_no_secret_or_too_short_to_tell_apart_stays() -> None:
    secrets = own_secrets({"pin": "12", "token": "a b/c?d", "note": "plain"}, ["/args/pin", "/args/token"])

    assert "12" not in secrets
    assert without("plain 12", secrets) == "plain 12"
    assert without("x=a%20b%2Fc%3Fd", secrets) == f"x={MASK}"
