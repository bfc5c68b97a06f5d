"""Tokens as text: what is recognisable, what is kept, what is refused before any look-up."""

import pytest

from workbench.queries.tokens import digest, new_secret, well_formed
from workbench.roles import SCOPES, Scope, TokenKind


def test_secrets_are_long_random_and_check_themselves() -> None:
    secrets = {new_secret("agent") for _ in range(50)}

    assert len(secrets) == 50
    assert all(secret.startswith("wb_agent_") and len(secret) == 9 + 43 + 6 for secret in secrets)
    assert all(well_formed(secret) for secret in secrets)
    assert len({digest(secret) for secret in secrets}) == 50


@pytest.mark.parametrize("spoil", [lambda s: s[:-1], lambda s: s[:20] + "!" + s[21:], lambda s: s.swapcase()])
def test_a_mistyped_or_cut_secret_is_told_apart(spoil) -> None:  # type: ignore[no-untyped-def]
    assert not well_formed(spoil(new_secret("integration")))


@pytest.mark.parametrize("text", ["", "wb_agent_", "Bearer", "wb_person_" + "a" * 49, "wb_agent_" + "é" * 49])
def test_what_is_no_token_is_told_apart(text: str) -> None:
    assert not well_formed(text)


def test_no_kind_of_token_can_decide_sign_or_grant() -> None:
    assert set(SCOPES) == set(TokenKind)
    assert frozenset().union(*SCOPES.values()) == {Scope.START_RUNS, Scope.READ_RUNS, Scope.STOP_RUNS}
    assert Scope.STOP_RUNS not in SCOPES[TokenKind.INTEGRATION]
