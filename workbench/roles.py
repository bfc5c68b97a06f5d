"""The roles that people hold and the kinds of token, as plain words.

Owns the vocabulary only: who may do what is `workbench.policies`' work. Must not import Django.
"""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a person is trusted with. A person may hold several; each grant says by whom and since when."""

    OPERATOR = "operator"
    LEAD = "lead"
    APPROVER = "approver"
    AUDITOR = "auditor"
    OWNER = "owner"
    ADMIN = "admin"


class TokenKind(StrEnum):
    """What a token stands for. Neither kind has a scope that decides, signs or grants (E-3)."""

    AGENT = "agent"
    INTEGRATION = "integration"


class Scope(StrEnum):
    """What a token may ask for. To stop is the one thing that it may order, and only of a run that it started."""

    START_RUNS = "runs:start"
    READ_RUNS = "runs:read"
    STOP_RUNS = "runs:stop"


SCOPES: dict[TokenKind, frozenset[Scope]] = {
    TokenKind.AGENT: frozenset({Scope.START_RUNS, Scope.READ_RUNS, Scope.STOP_RUNS}),
    TokenKind.INTEGRATION: frozenset({Scope.START_RUNS, Scope.READ_RUNS}),
}

# The role under which a person with several acts, unless a verb asks for a certain one.
ACTING_ORDER = (Role.LEAD, Role.OPERATOR, Role.APPROVER, Role.ADMIN, Role.OWNER, Role.AUDITOR)


def acting_role(roles: frozenset[Role]) -> str:
    """The role written beside a person's name in the trail; "none" for somebody without any."""
    return next((str(role) for role in ACTING_ORDER if role in roles), "none")
