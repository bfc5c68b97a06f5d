"""One table from what was observed to what it means (faults.md, section 2.4).

The contract may narrow the table, never widen it towards "safe".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tools import conditions, proof
from tools.bindings import Unbindable
from tools.contract import Contract, ErrorClass, Json, Meaning, StatusQuery
from tools.json_schema import schema_fault
from tools.meanings import DEFAULT_MEANINGS, POSITIVE, may_mean
from tools.pointers import find
from tools.refusal import said
from tools.retry_after import retry_after_s


class Seen(StrEnum):
    """What the adapter saw, before anybody says what it means.

    NOT_SENT: no byte of the request left. REFUSED_HERE: nor ever will, the call itself is unsound.
    """

    ANSWER = "answer"
    NOT_SENT = "not_sent"
    NO_ANSWER = "no_answer"
    BAD_BODY = "bad_body"
    TOO_LARGE = "too_large"
    RAISED = "raised"
    REFUSED_HERE = "refused_here"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What came back from one call. Durations in milliseconds, sizes in bytes.

    `body` is parsed JSON made storable (no NUL, bounded depth and size); of one that was TOO_LARGE the members that had
    ended where reading stopped (tools.payload.whole_members), None where there is no telling. `body_text` is the first
    64 KiB of a body that could not be used; `headers` only the ones that matter (lower case names). `key` is the key
    that went with it. `schema_fault` is None when nobody looked, "" when the body fits the contract's schema.
    `body_bytes` and `body_sha256` speak of what was read, `body_declared` is the size that the sender announced.
    """

    seen: Seen
    status: int | None = None
    body: Json = None
    body_text: str = ""
    body_bytes: int = 0
    body_sha256: str = ""
    body_declared: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    duration_ms: int = 0
    key: str = ""
    schema_fault: str | None = None


class OutcomeKind(StrEnum):
    """The outcome of one call; never stored as an action's state."""

    CONFIRMED = "confirmed"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    TEMPORARY = "temporary"
    THROTTLED = "throttled"
    NOT_SENT = "not_sent"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Cut:
    """An answer larger than its contract allows: how much was read, the digest of that, the size it announced."""

    read: int
    sha256: str
    declared: int | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an observation means under a contract. `retry_after_s` from a throttled or temporary answer.

    `cut`: the answer was too large; `result` holds only the members that had ended where reading stopped.
    `credential`: it was not this call that was refused but whoever makes it, so that the next one will be too.
    """

    kind: OutcomeKind
    error_class: ErrorClass | None = None
    detail: str = ""
    result: Json = None
    reference: str = ""
    retry_after_s: float | None = None
    status: int | None = None
    duration_ms: int = 0
    cut: Cut | None = None
    credential: bool = False


class Verdict(StrEnum):
    """What a status query says about a call."""

    FOUND = "found"
    DENIED = "denied"
    ABSENT = "absent"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, kw_only=True)
class QueryAnswer:
    """A status query's answer. ABSENT is a bare "not found": what it proves is the engine's rule."""

    verdict: Verdict
    reference: str = ""
    result: Json = None
    detail: str = ""
    status: int | None = None
    duration_ms: int = 0


_REJECTIONS: Mapping[Meaning, ErrorClass] = {
    Meaning.VALIDATION: ErrorClass.VALIDATION,
    Meaning.PERMISSION: ErrorClass.PERMISSION,
    Meaning.CREDENTIAL: ErrorClass.PERMISSION,
    Meaning.CONFLICT: ErrorClass.CONFLICT,
    Meaning.NOT_FOUND: ErrorClass.NOT_FOUND,
    Meaning.REFUSED: ErrorClass.REFUSED,
}


def classify(
    contract: Contract, observation: Observation, *, compensating: bool = False, in_part: bool = False
) -> Outcome:
    """What an observation of a call under `contract` means (faults.md, section 2.4).

    Unknown wherever the observation does not prove more. For a tool without effects nothing is at stake, so
    what would be unknown is a temporary failure there: the read is simply repeated. `in_part`: an answer that was too
    large may prove success by what was read of it; whoever judges the world by a read must not allow it.
    """
    outcome = replace(_of_seen(contract, observation, compensating, in_part), cut=_cut(observation))
    if outcome.kind is OutcomeKind.UNKNOWN and not contract.has_effect:
        return replace(outcome, kind=OutcomeKind.TEMPORARY)
    return outcome


def _cut(observation: Observation) -> Cut | None:
    """How much of an answer was read that was larger than allowed; None for any other."""
    if observation.seen is not Seen.TOO_LARGE:
        return None
    return Cut(
        read=observation.body_bytes, sha256=observation.body_sha256, declared=observation.body_declared
    )


def _of_seen(contract: Contract, observation: Observation, compensating: bool, in_part: bool) -> Outcome:
    match observation.seen:
        case Seen.NOT_SENT:
            return _outcome(observation, OutcomeKind.NOT_SENT, ErrorClass.NOT_SENT)
        case Seen.REFUSED_HERE:
            return _outcome(observation, OutcomeKind.REJECTED, ErrorClass.VALIDATION)
        case Seen.NO_ANSWER:
            return _unknown(observation, ErrorClass.NO_ANSWER, "no complete answer arrived")
        case Seen.RAISED:
            return _unknown(observation, ErrorClass.SERVER, "the tool raised an error")
    if observation.status is None:
        return _unknown(observation, ErrorClass.GARBAGE, "the answer has no status")
    meaning = _meaning(contract, observation, observation.status, compensating)
    if in_part and meaning is Meaning.CONFIRMED and observation.seen is Seen.TOO_LARGE:
        return _of_part(contract, observation)
    return _of_meaning(contract, observation, observation.status, meaning)


def _of_meaning(contract: Contract, observation: Observation, status: int, meaning: Meaning) -> Outcome:
    if meaning in _REJECTIONS:
        told = said(observation.body, code=contract.errors.code)
        refused = _outcome(observation, OutcomeKind.REJECTED, _REJECTIONS[meaning], told)
        return replace(refused, credential=meaning is Meaning.CREDENTIAL)
    match meaning:
        case Meaning.CONFIRMED if 200 <= status <= 299:
            return _of_success(contract, observation)
        case Meaning.CONFIRMED:
            return _outcome(observation, OutcomeKind.CONFIRMED, None, "the effect was already gone")
        case Meaning.ACCEPTED:
            return _of_accepted(contract, observation)
        case Meaning.PARTIAL:
            return _outcome(observation, OutcomeKind.PARTIAL, ErrorClass.PARTIAL, result=observation.body)
        case Meaning.TEMPORARY if status == 503 and retry_after_s(observation.headers) is not None:
            # It says when to come back: a speed limit under another number.
            return _outcome(observation, OutcomeKind.THROTTLED, ErrorClass.THROTTLED, wait=True)
        case Meaning.TEMPORARY:
            return _outcome(observation, OutcomeKind.TEMPORARY, ErrorClass.TEMPORARY, wait=True)
        case Meaning.THROTTLED:
            return _outcome(observation, OutcomeKind.THROTTLED, ErrorClass.THROTTLED, wait=True)
        case Meaning.IN_FLIGHT:
            return _outcome(observation, OutcomeKind.UNKNOWN, ErrorClass.IN_FLIGHT, wait=True)
    return _unknown(observation, _class_of_status(status), f"status {status} settles nothing")


def _meaning(contract: Contract, observation: Observation, status: int, compensating: bool) -> Meaning:
    success = 200 <= status <= 299
    usable = observation.seen is Seen.ANSWER
    by_code = _meaning_of_code(contract, observation) if usable else None
    if by_code is not None and by_code not in POSITIVE:
        return by_code
    if not success and not _is_genuine_error(contract, observation):
        return Meaning.UNKNOWN
    meaning = contract.statuses.get(status)
    if meaning is None:
        meaning = DEFAULT_MEANINGS.get(status, Meaning.CONFIRMED if success else Meaning.UNKNOWN)
    if not may_mean(status, meaning):
        return Meaning.UNKNOWN
    if meaning is Meaning.CONFIRMED and not success and not (compensating and usable):
        return Meaning.UNKNOWN
    return meaning


def _is_genuine_error(contract: Contract, observation: Observation) -> bool:
    if contract.errors.schema is None:
        return True
    return observation.seen is Seen.ANSWER and not schema_fault(contract.errors.schema, observation.body)


def _meaning_of_code(contract: Contract, observation: Observation) -> Meaning | None:
    if not contract.errors.codes:
        return None
    code = find(observation.body, contract.errors.code)
    if isinstance(code, bool) or not isinstance(code, str | int):
        return None
    return contract.errors.codes.get(str(code))


def _of_success(contract: Contract, observation: Observation) -> Outcome:
    if observation.seen is not Seen.ANSWER:
        return _unknown(observation, ErrorClass.GARBAGE, "the answer cannot be read")
    if fault := _result_fault(contract, observation):
        return _unknown(observation, ErrorClass.GARBAGE, fault, result=observation.body)
    reference = proof.reference_in(observation.body, contract.reference)
    return _outcome(
        observation, OutcomeKind.CONFIRMED, None, result=observation.body, reference=reference or ""
    )


def _of_part(contract: Contract, observation: Observation) -> Outcome:
    """A success whose answer went on beyond the limit: the size of an answer must not hide what it says."""
    if fault := proof.part_fault(contract, observation.body, key=observation.key):
        return _unknown(observation, ErrorClass.GARBAGE, fault)
    reference = proof.reference_in(observation.body, contract.reference) or ""
    return _outcome(observation, OutcomeKind.CONFIRMED, None, result=observation.body, reference=reference)


def _result_fault(contract: Contract, observation: Observation) -> str:
    fault = observation.schema_fault
    if fault is None:
        fault = schema_fault(contract.result_schema, observation.body)
    return proof.whole_fault(contract, observation.body, key=observation.key, schema_fault=fault)


def _of_accepted(contract: Contract, observation: Observation) -> Outcome:
    if observation.seen is not Seen.ANSWER:
        return _unknown(observation, ErrorClass.GARBAGE, "the answer cannot be read")
    reference = proof.reference_in(observation.body, contract.reference) if contract.reference else None
    return _outcome(
        observation, OutcomeKind.ACCEPTED, None, result=observation.body, reference=reference or ""
    )


def classify_query(
    query: StatusQuery,
    observation: Observation,
    scope: Mapping[str, Json],
    *,
    contract: Contract | None = None,
) -> QueryAnswer:
    """What the answer to a status query says about the call it was asked for.

    Evidence is only a readable answer of the tool itself: a page of a proxy, a wrong schema, an error or
    silence say nothing. `contract` is the queried tool's; with it its schemas are looked at here as well.
    """
    answer, status = observation, observation.status
    if answer.seen is not Seen.ANSWER or status is None:
        return _no_answer(answer, answer.detail or "the status query did not answer")
    if fault := _query_fault(answer, status, contract):
        return _no_answer(answer, fault)
    if status in query.absent_statuses and not 200 <= status <= 299:
        return _answered(answer, Verdict.ABSENT, "the tool knows no such call")
    if not 200 <= status <= 299 or status in {202, 207}:
        return _no_answer(answer, f"the status query answered with status {status}")
    if not isinstance(answer.body, dict | list):
        return _no_answer(answer, "the status query answered without a document")
    try:
        return _verdict(query, answer, scope)
    except Unbindable as error:
        return _no_answer(answer, str(error))


def _verdict(query: StatusQuery, answer: Observation, scope: Mapping[str, Json]) -> QueryAnswer:
    if conditions.evaluate(query.found, answer.body, scope):
        reference = proof.reference_in(answer.body, query.reference) if query.reference else ""
        if reference is None:
            return _no_answer(answer, f"the status query's answer carries no reference at {query.reference}")
        return _answered(answer, Verdict.FOUND, query.found.text, reference)
    if query.denied is not None and conditions.evaluate(query.denied, answer.body, scope):
        return _answered(answer, Verdict.DENIED, query.denied.text)
    return _answered(answer, Verdict.ABSENT, "the answer names no such call")


def _query_fault(answer: Observation, status: int, contract: Contract | None) -> str:
    fault = answer.schema_fault
    if fault is None and contract is not None:
        success = 200 <= status <= 299
        fault = schema_fault(contract.result_schema if success else contract.errors.schema, answer.body)
    return f"the status query's answer does not fit its contract: {fault}" if fault else ""


def _answered(answer: Observation, verdict: Verdict, detail: str, reference: str = "") -> QueryAnswer:
    return QueryAnswer(
        verdict=verdict,
        reference=reference,
        result=answer.body,
        detail=detail,
        status=answer.status,
        duration_ms=answer.duration_ms,
    )


def _no_answer(answer: Observation, detail: str) -> QueryAnswer:
    return QueryAnswer(
        verdict=Verdict.NO_ANSWER, detail=detail, status=answer.status, duration_ms=answer.duration_ms
    )


def _class_of_status(status: int) -> ErrorClass:
    match status:
        case 404 | 410:
            return ErrorClass.NOT_FOUND
        case 409:
            return ErrorClass.CONFLICT
        case 408 | 504:
            return ErrorClass.NO_ANSWER
    return ErrorClass.GARBAGE if 200 <= status <= 299 else ErrorClass.SERVER


def _unknown(
    observation: Observation, error_class: ErrorClass, detail: str, *, result: Json = None
) -> Outcome:
    told = f"{detail}: {observation.detail}" if observation.detail else detail
    return _outcome(observation, OutcomeKind.UNKNOWN, error_class, told, result=result)


def _outcome(
    observation: Observation,
    kind: OutcomeKind,
    error_class: ErrorClass | None,
    detail: str = "",
    *,
    result: Json = None,
    reference: str = "",
    wait: bool = False,
) -> Outcome:
    return Outcome(
        kind=kind,
        error_class=error_class,
        detail=detail or observation.detail,
        result=result,
        reference=reference,
        retry_after_s=retry_after_s(observation.headers) if wait else None,
        status=observation.status,
        duration_ms=observation.duration_ms,
    )
