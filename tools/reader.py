"""Reads contract and definition files, and documents as stored, into frozen values.

Reports everything that is wrong at once, with line and column in a file. Owns no rule itself: form is
`tools.structure`'s, agreement `tools.contract_rules`'s and `tools.definition_rules`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path as FilePath
from typing import Any

from tools.canonical import digest
from tools.contract import (
    Callback,
    Compensation,
    CompensationKind,
    Condition,
    Contract,
    DryRun,
    EffectKind,
    ErrorAnswers,
    ErrorClass,
    Escalation,
    HttpCall,
    Idempotency,
    Items,
    Json,
    KeySupport,
    Level,
    Limits,
    Meaning,
    PriorState,
    PythonCall,
    Rate,
    RecoveryClass,
    RetryRule,
    StatusQuery,
    Texts,
    Who,
)
from tools.contract_rules import faults_of_contract
from tools.definition import (
    Business,
    Definition,
    EndState,
    FollowUp,
    IfNotApproved,
    OnFailure,
    Step,
    StepIs,
)
from tools.definition_rules import faults_of_definition
from tools.json_text import read_json
from tools.positions import Positions, Unparsable, line_and_column
from tools.problems import Fault, FileProblems, Problem, spell
from tools.structure import faults_of_form
from tools.toml_text import read_toml

LARGEST_FILE = 4_194_304


def read_contract(path: str | FilePath) -> Contract:
    """The contract in a TOML or JSON file. Raises `FileProblems` with all that is wrong; OSError as usual."""
    document, positions = read_document(path)
    refuse(_contract_faults(document), str(path), positions)
    return _contract(document)


def read_definition(path: str | FilePath) -> Definition:
    """The definition in a TOML or JSON file. Raises as `read_contract` does."""
    document, positions = read_document(path)
    refuse(_definition_faults(document), str(path), positions)
    return _definition(document)


def contract_from_document(document: Json) -> Contract:
    """A contract from a document as stored. Raises `FileProblems` (without lines)."""
    refuse(_contract_faults(document), "", None)
    return _contract(document)


def definition_from_document(document: Json) -> Definition:
    """A definition from a document as stored. Raises `FileProblems` (without lines)."""
    refuse(_definition_faults(document), "", None)
    return _definition(document)


def published_contract(document: Json) -> Contract:
    """A contract from a document that was checked when it was published; not checked again."""
    return _contract(document)


def published_definition(document: Json) -> Definition:
    """A definition from a document that was checked when it was published; not checked again."""
    return _definition(document)


def _contract_faults(document: Json) -> list[Fault]:
    return faults_of_form(document, "contract") or list(faults_of_contract(document))


def _definition_faults(document: Json) -> list[Fault]:
    return faults_of_form(document, "definition") or list(faults_of_definition(document))


def read_document(path: str | FilePath) -> tuple[Json, Positions]:
    """What a TOML or JSON file holds and where. Raises `FileProblems` for what cannot be parsed; OSError as usual."""
    path = FilePath(path)
    raw = path.read_bytes()
    if len(raw) > LARGEST_FILE:
        raise _single(path, 1, 1, f"the file is larger than {LARGEST_FILE} bytes", "Split or shorten it.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = line_and_column(raw[: error.start].decode("utf-8"), error.start)
        raise _single(path, line, column, "the file is not UTF-8 here", "Save it as UTF-8.") from None
    parse: Callable[[str], tuple[Json, Positions]]
    match path.suffix.lower():
        case ".toml":
            parse = read_toml
        case ".json":
            parse = read_json
        case _:
            raise _single(path, 1, 1, "the file is neither .toml nor .json", "Rename it.")
    try:
        document, positions = parse(text)
    except Unparsable as error:
        kind = path.suffix.lower()[1:].upper()
        raise _single(path, error.line, error.column, error.message, f"Correct the {kind}.") from None
    return document, positions


def _single(path: FilePath, line: int, column: int, message: str, remedy: str) -> FileProblems:
    one = Problem(path=str(path), line=line, column=column, where="", message=message, remedy=remedy)
    return FileProblems([one])


def refuse(faults: Iterable[Fault], path: str, positions: Positions | None) -> None:
    """Raises `FileProblems` with all faults, each at its place; nothing if there are none."""
    found = [*(positions.faults if positions else []), *faults]
    if not found:
        return
    raise FileProblems(_problem(fault, path, positions) for fault in dict.fromkeys(found))


def _problem(fault: Fault, path: str, positions: Positions | None) -> Problem:
    line, column = positions.place(fault.path) if positions else (0, 0)
    return Problem(
        path=path,
        line=line,
        column=column,
        where=spell(fault.path),
        message=fault.message,
        remedy=fault.remedy,
    )


def _contract(document: Json) -> Contract:
    given = dict(document)
    return Contract(
        **_plain(
            given, "tool version system operation reference echo accepted_answer_s require_confirmation"
        ),
        effect_kind=EffectKind(given["effect_kind"]),
        recovery_class=RecoveryClass(given["recovery_class"]),
        level=Level(given["level"]),
        texts=Texts(**given["texts"]),
        call=_call(given["call"]),
        args_schema=given["args_schema"],
        result_schema=given.get("result_schema"),
        idempotency=_with(Idempotency, given["idempotency"], support=KeySupport),
        statuses={int(status): Meaning(word) for status, word in given.get("statuses", {}).items()},
        errors=_errors(given.get("errors", {})),
        retry={ErrorClass(name): RetryRule(**rule) for name, rule in given.get("retry", {}).items()},
        limits=Limits(**given.get("limits", {})),
        rate=Rate(**given.get("rate", {})),
        succeeded_when=_condition(given.get("succeeded_when")),
        items=_with(Items, given["items"], states=_meanings) if "items" in given else None,
        callback=_with(Callback, given["callback"], states=_meanings) if "callback" in given else None,
        status_query=_status_query(given.get("status_query")),
        by_reference=_condition(given.get("by_reference")),
        dry_run=_dry_run(given.get("dry_run")),
        prior_state=PriorState(**given["prior_state"]) if "prior_state" in given else None,
        compensation=_compensation(given.get("compensation")),
        escalation=Escalation(**given.get("escalation", {})),
        secret_fields=tuple(given.get("secret_fields", ())),
        document=document,
        digest=digest(document),
    )


def _definition(document: Json) -> Definition:
    given = dict(document)
    return Definition(
        **_plain(given, "name version title input_schema recovery_deadline_s team"),
        steps=tuple(_step(step) for step in given["steps"]),
        on_failure=OnFailure(given.get("on_failure", OnFailure.COMPENSATE)),
        end_states=tuple(_end_state(state) for state in given.get("end_states", ())),
        business=Business(**given.get("business", {})),
        deadlines=dict(given.get("deadlines", {})),
        titles=dict(given.get("titles", {})),
        document=document,
        digest=digest(document),
    )


def _plain(given: dict[str, Json], names: str) -> dict[str, Any]:
    return {name: given[name] for name in names.split() if name in given}


def _with[T](kind: Callable[..., T], given: dict[str, Json], /, **enums: Callable[[Any], Any]) -> T:
    return kind(**{name: enums[name](value) if name in enums else value for name, value in given.items()})


def _call(given: dict[str, Json]) -> HttpCall | PythonCall:
    rest = {name: value for name, value in given.items() if name != "adapter"}
    return HttpCall(**rest) if given["adapter"] == "http" else PythonCall(**rest)


def _errors(given: dict[str, Json]) -> ErrorAnswers:
    codes = _meanings(given.get("codes", {}))
    return ErrorAnswers(schema=given.get("schema"), code=given.get("code", ""), codes=codes)


def _meanings(given: dict[str, str]) -> dict[str, Meaning]:
    return {word: Meaning(meaning) for word, meaning in given.items()}


def _condition(given: dict[str, Json] | None) -> Condition | None:
    return None if given is None else Condition(**given)


def _status_query(given: dict[str, Json] | None) -> StatusQuery | None:
    if given is None:
        return None
    return _with(
        StatusQuery,
        given,
        found=lambda one: Condition(**one),
        denied=_condition,
        absent_statuses=tuple,
    )


def _dry_run(given: dict[str, Json] | None) -> DryRun | None:
    if given is None:
        return None
    return _with(DryRun, given, accepted=lambda one: Condition(**one), refused_statuses=tuple)


def _compensation(given: dict[str, Json] | None) -> Compensation | None:
    if given is None:
        return None
    return _with(
        Compensation,
        given,
        kind=CompensationKind,
        who=Who,
        preconditions=lambda many: tuple(Condition(**one) for one in many),
        already_done=_condition,
        verify=_condition,
    )


def _step(given: dict[str, Json]) -> Step:
    return _with(Step, given, on_rejected=OnFailure, if_not_approved=IfNotApproved)


def _end_state(given: dict[str, Json]) -> EndState:
    return EndState(
        id=given["id"],
        title=given["title"],
        conditions=tuple(_end_condition(one) for one in given["conditions"]),
        follow_ups=tuple(FollowUp(**one) for one in given.get("follow_ups", ())),
    )


def _end_condition(given: dict[str, Json]) -> Condition | StepIs:
    if "step" not in given:
        return Condition(**given)
    return StepIs(step=given["step"], states=tuple(given["states"]), text=given["text"])


__all__ = [
    "FileProblems",
    "Problem",
    "contract_from_document",
    "definition_from_document",
    "published_contract",
    "published_definition",
    "read_contract",
    "read_definition",
    "read_document",
    "refuse",
]
