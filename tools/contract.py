"""The contract of one tool: what a call does, how it fails, how it is made up for.

Only frozen values live here. Reading files and reporting errors in them is `tools.reader`'s work;
deciding what an answer means is `tools.outcome`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

type Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of the same."""


class EffectKind(StrEnum):
    """What a call does to the world (S1-1)."""

    READ_ONLY = "read_only"
    REVERSIBLE_WRITE = "reversible_write"
    EXTERNAL_EFFECT = "external_effect"


class RecoveryClass(StrEnum):
    """How a confirmed call can be recovered from (S0-13)."""

    RETRYABLE = "retryable"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"


class Level(StrEnum):
    """How much is at stake; ordered low to critical (S0-26)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class KeySupport(StrEnum):
    """What the tool does with our idempotency key (S0-28)."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    NONE = "none"


class CompensationKind(StrEnum):
    """What a compensation achieves. `mitigates` leaves the effect in place."""

    RESTORES = "restores"
    OFFSETS = "offsets"
    MITIGATES = "mitigates"


class Who(StrEnum):
    """Who may set a compensation going (S0-35)."""

    AUTOMATIC = "automatic"
    APPROVAL = "approval"
    HUMAN = "human"


class Meaning(StrEnum):
    """What a contract may say that a status means (architecture.md, law 5)."""

    CONFIRMED = "confirmed"
    ACCEPTED = "accepted"
    VALIDATION = "validation"
    PERMISSION = "permission"
    CREDENTIAL = "credential"
    CONFLICT = "conflict"
    NOT_FOUND = "not_found"
    REFUSED = "refused"
    TEMPORARY = "temporary"
    THROTTLED = "throttled"
    IN_FLIGHT = "in_flight"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


class ErrorClass(StrEnum):
    """Why a call did not end in `confirmed`; retry rules hang on it (S0-33, S1-18)."""

    VALIDATION = "validation"
    PERMISSION = "permission"
    CONFLICT = "conflict"
    NOT_FOUND = "not_found"
    REFUSED = "refused"
    TEMPORARY = "temporary"
    THROTTLED = "throttled"
    NOT_SENT = "not_sent"
    NO_ANSWER = "no_answer"
    GARBAGE = "garbage"
    IN_FLIGHT = "in_flight"
    SERVER = "server"
    PARTIAL = "partial"


@dataclass(frozen=True, kw_only=True)
class RetryRule:
    """Tries for one error class. Delays in seconds; `max_attempts` counts all calls, the first included."""

    max_attempts: int = 1
    first_delay_s: float = 1.0
    factor: float = 2.0
    max_delay_s: float = 60.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one call: seconds and bytes."""

    connect_s: float = 3.0
    total_s: float = 10.0
    body_bytes: int = 1_048_576


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How fast a tool may be called, by everybody together; None = no bound of that kind.

    `burst` calls may follow each other without a pause. `at_once` bounds the calls under way; reads are not
    counted there. A call that has waited `longest_wait_s` seconds for its turn goes to a person.
    """

    per_second: float | None = None
    burst: int = 1
    at_once: int | None = None
    longest_wait_s: float = 900.0


@dataclass(frozen=True, kw_only=True)
class HttpCall:
    """A declarative HTTP call. `path` may hold `{name}` placeholders filled from `args`, percent-encoded.

    `query` and `body` are bindings (see `tools.bindings`) over {"args", "key"}; a body of None sends no body.
    """

    method: str
    path: str
    query: Mapping[str, Json] = field(default_factory=dict)
    body: Json = None
    headers: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PythonCall:
    """A Python callable `module:name`, run in a child process unless declared `trusted_fast`."""

    target: str
    trusted_fast: bool = False


@dataclass(frozen=True, kw_only=True)
class Idempotency:
    """What becomes of our key (faults.md 1.3). `retention_s` None = not kept, or not known.

    `natural`: the same call again leaves the same state, so that it needs no key (S0-28).
    """

    support: KeySupport = KeySupport.NONE
    header: str = "Idempotency-Key"
    retention_s: float | None = None
    natural: bool = False


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One checkable sentence: read `read` with `args`, look at `pointer`, compare with `value`.

    With `read` None the document is the one at hand (an answer, a prior state, a step's state).
    `value` may be a binding. Operators: equals, not_equals, exists, absent, one_of, at_least, at_most.
    """

    text: str
    read: str | None = None
    args: Mapping[str, Json] = field(default_factory=dict)
    pointer: str = ""
    operator: str = "exists"
    value: Json = None


@dataclass(frozen=True, kw_only=True)
class StatusQuery:
    """How to ask whether a call took effect, by a read-only tool (S0-38, S3-8).

    `found`/`denied` are conditions on the answer's body. "Not found" (the status in `absent_statuses`, or an
    answered query for which neither condition holds) proves absence only when `authoritative` and after
    `settle_s` seconds beyond the call's own limits (engine.md, section 3).
    """

    tool: str
    args: Mapping[str, Json]
    found: Condition
    denied: Condition | None = None
    reference: str = ""
    absent_statuses: tuple[int, ...] = (404,)
    authoritative: bool = True
    settle_s: float = 0.0
    first_delay_s: float = 0.0
    every_s: float = 2.0
    max_every_s: float = 60.0


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """How to have a call tried without its effect, in the provider's own test mode: by a read-only tool.

    `args` are bindings over the very call's {"args"}. `accepted` is a condition on the answer's body; an answer for
    which it does not hold, or one with a status in `refused_statuses`, says that the call would be refused, and `why`
    points at the reason. Anything else says nothing.
    """

    tool: str
    args: Mapping[str, Json]
    accepted: Condition
    why: str = ""
    refused_statuses: tuple[int, ...] = (409, 422)


@dataclass(frozen=True, kw_only=True)
class PriorState:
    """The read made before a write, kept as its snapshot (S1-10). `version` is a pointer into the answer."""

    tool: str
    args: Mapping[str, Json]
    version: str = ""
    max_age_s: float = 60.0
    if_match: bool = False


@dataclass(frozen=True, kw_only=True)
class Compensation:
    """What makes up for a confirmed call (S0-26, S0-81). Bound in the commit that confirms."""

    tool: str
    kind: CompensationKind
    args: Mapping[str, Json]
    who: Who = Who.AUTOMATIC
    preconditions: tuple[Condition, ...] = ()
    already_done: Condition | None = None
    verify: Condition | None = None
    leaves: str = ""


@dataclass(frozen=True, kw_only=True)
class Escalation:
    """For an irreversible tool: when, with what context, to whom (S0-82)."""

    when: str = ""
    context: str = ""
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Sentences for people. Placeholders `{args.x}`, `{result.x}` only; anything else is literal."""

    title: str
    done: str
    question: str
    effect: str = ""


@dataclass(frozen=True, kw_only=True)
class ErrorAnswers:
    """How the tool's own error answers look, so that a proxy's page is not taken for one (lesson L5).

    `schema` None = not told. `code` points at the tool's error code; `codes` says what a code means, before
    the status is looked at. A code also counts in a 2xx answer (an embedded failure).
    """

    schema: Json | None = None
    code: str = ""
    codes: Mapping[str, Meaning] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Items:
    """A call over many things at once (S0-56): where each stands in the arguments and in the answer.

    `list` points into the arguments, `results` into the result, at a list each. `id` and `key` point into a
    part of the first: at its name, and at the place of its own key ("" = none is taken); `result_id`,
    `result_state` and `result_reference` into a part of the second. A state that `states` does not name is
    unknown, and so is a part without an answer. `most` is how many one call may carry.

    In the query and the compensation of such a contract `item` is the part of the arguments, `result` the
    part of the answer and `key` the part's own key; both are made for each part alone.
    """

    list: str
    id: str
    results: str
    result_id: str
    result_state: str
    states: Mapping[str, Meaning]
    key: str = ""
    result_reference: str = ""
    most: int = 1000


@dataclass(frozen=True, kw_only=True)
class Callback:
    """How the answer to an accepted call comes by itself (engine.md, section 6).

    Our address goes along in `header`, or at the pointer `url_argument` into the arguments. `signature` is the
    header that proves the sender, made with the secret of the name `secret` (see `tools.callbacks`). The
    pointers lead into what arrives: our key, the provider's reference, its state, its time (ISO 8601), a
    version that only rises, and the result. A state that `states` does not name is unknown.
    """

    secret: str
    key: str
    state: str
    states: Mapping[str, Meaning]
    header: str = ""
    url_argument: str = ""
    signature: str = "Webhook-Signature"
    reference: str = ""
    at: str = ""
    version: str = ""
    result: str = ""


@dataclass(frozen=True, kw_only=True)
class Contract:
    """The rules of one tool, versioned, immutable once published; `digest` covers all of it (S0-26, S1-5).

    `reference` and `echo` point into the result: at the provider's reference and at our own key sent back.
    `succeeded_when` is a condition on a 2xx body; without it the schema alone decides. `by_reference` reads a thing
    under the `reference` that a person found outside and says whether it is this call's: what a tool that cannot be
    asked by key or nature offers instead of a status query. `dry_run` tries the call without its effect.
    """

    tool: str
    version: int
    system: str
    effect_kind: EffectKind
    recovery_class: RecoveryClass
    level: Level
    texts: Texts
    call: HttpCall | PythonCall
    operation: str
    args_schema: Json
    result_schema: Json | None
    idempotency: Idempotency
    statuses: Mapping[int, Meaning]
    retry: Mapping[ErrorClass, RetryRule]
    limits: Limits
    rate: Rate = field(default_factory=Rate)
    reference: str = ""
    echo: str = ""
    errors: ErrorAnswers = field(default_factory=ErrorAnswers)
    succeeded_when: Condition | None = None
    accepted_answer_s: float | None = None
    items: Items | None = None
    callback: Callback | None = None
    status_query: StatusQuery | None = None
    by_reference: Condition | None = None
    dry_run: DryRun | None = None
    prior_state: PriorState | None = None
    compensation: Compensation | None = None
    escalation: Escalation = field(default_factory=Escalation)
    secret_fields: tuple[str, ...] = ()
    require_confirmation: bool = False
    document: Json = None
    digest: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether a confirmed call leaves something in the world."""
        return self.effect_kind is not EffectKind.READ_ONLY
