"""The start of a run: idempotent on (who starts, start key), everything on record before anything moves."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import batched
from typing import Any

from django.db import IntegrityError, connection

from sagas import entries, faultpoints
from sagas.entries import EntryRow
from sagas.errors import InvalidInput, InvalidSteps, NotFound, StartKeyConflict
from sagas.facts import Actor, AdHocStep, Started, StepAccount
from sagas.models import Action, DefinitionVersion, Outbox, Run
from sagas.published import (
    check_definition,
    definition_by_id,
    find_definition,
    must_be_in_use,
    newest_versions,
    pinned,
    store_unnamed,
)
from sagas.rows import add, store
from sagas.states import Machine, RunState
from sagas.tx import durable, lock_freeze_shared
from tools.bindings import Unbindable, bind
from tools.canonical import fingerprint
from tools.contract import Json
from tools.definition import Definition
from tools.json_schema import schema_faults
from tools.keys import forward_key
from tools.payload import storable
from tools.reader import FileProblems, definition_from_document
from tools.texts import fill

STORED_AT_ONCE = 500
"""So many steps of a run are made ready and stored before the next ones."""


def start_run(
    *,
    actor: Actor,
    definition: str,
    version: int | None = None,
    input: Json,
    business_ref: str = "",
    intent: str = "",
    start_key: str,
    accounts: Mapping[str, StepAccount] | None = None,
) -> Started:
    """Start a run of a published workflow, or return the run that this start key began (S1-9).

    `accounts` are the agent's own words per step. Raises `NotFound`, `InvalidInput`, `StartKeyConflict`, `Retired`.
    """
    row = find_definition(definition, version)
    _must_be_storable(
        {"input": input, "business_ref": business_ref, "intent": intent, "start_key": start_key}
    )
    asked = fingerprint(
        {"definition": definition, "version": version, "input": input, "business_ref": business_ref}
    )
    if stored := _stored(actor, start_key, asked):
        return stored
    workflow = definition_by_id(row.pk)
    faults = schema_faults(workflow.input_schema, input)
    if faults:
        raise InvalidInput(faults)
    request = Request(
        actor=actor,
        given=input,
        business_ref=business_ref,
        intent=intent,
        start_key=start_key,
        asked=asked,
        accounts=accounts or {},
    )
    return _once(request, lambda: create(row, workflow, request))


def start_steps(
    *,
    actor: Actor,
    steps: Sequence[AdHocStep],
    title: str,
    business_ref: str = "",
    intent: str = "",
    start_key: str,
    on_failure: str = "compensate",
    parent_ref: str = "",
) -> Started:
    """Start a run of an ad-hoc list of steps, checked by the same lint and stored as an unnamed version.

    `parent_ref` links a remedy to the run it is for. Raises `InvalidSteps`, `StartKeyConflict`, `NotFound`.
    """
    document = {"steps": [asdict(step) for step in steps], "title": title, "business_ref": business_ref}
    _must_be_storable({**document, "intent": intent, "start_key": start_key})
    asked = fingerprint(document)
    if stored := _stored(actor, start_key, asked):
        return stored
    workflow = _workflow(steps, title, on_failure)
    request = Request(
        actor=actor,
        given={},
        business_ref=business_ref,
        intent=intent,
        start_key=start_key,
        asked=asked,
        accounts={step.id: StepAccount(why=step.why, evidence=step.evidence) for step in steps},
        parent=_parent(parent_ref),
    )
    return _once(request, lambda: create(store_unnamed(workflow, by=actor.id), workflow, request))


def _must_be_storable(given: Mapping[str, Json]) -> None:
    """Refuse text that the database could not keep as it is. Pointers start at the input itself."""
    found = [
        (pointer.removeprefix("/input"), "This text holds a character that cannot be stored.")
        for pointer, text in _texts(given, "")
        if storable(text) != text
    ]
    if found:
        raise InvalidInput(tuple(found))


def _texts(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield f"{pointer}/{storable(name)}", name
            yield from _texts(part, f"{pointer}/{storable(name)}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _texts(part, f"{pointer}/{index}")


def _workflow(steps: Sequence[AdHocStep], title: str, on_failure: str) -> Definition:
    newest = newest_versions()
    document: dict[str, Json] = {
        "name": "ad_hoc",
        "version": 1,
        "title": title,
        "on_failure": on_failure,
        "input_schema": {"type": "object"},
        "steps": [
            {
                "id": step.id,
                "tool": step.tool,
                "contract_version": newest.get(step.tool, 1),
                "args": step.args,
                **({"why": step.why} if step.why else {}),
                **({"on_rejected": step.on_rejected} if step.on_rejected else {}),
            }
            for step in steps
        ],
    }
    try:
        workflow = definition_from_document(document)
    except FileProblems as problems:
        raise InvalidSteps(
            tuple((_pointer(problem.where), problem.message) for problem in problems.problems)
        ) from None
    places = {step.id: index for index, step in enumerate(steps)}
    findings = [finding for finding in check_definition(workflow) if finding.severity == "error"]
    if findings:
        raise InvalidSteps(
            tuple((f"/steps/{places.get(f.step, 0)}", f"{f.message} {f.fix}") for f in findings)
        )
    return workflow


def _pointer(where: str) -> str:
    """A place as the reader names it, `steps[1].why`, as a JSON pointer."""
    return "/" + re.sub(r"\[(\d+)\]", r"/\1", where).replace(".", "/") if where else "/steps"


def _parent(parent_ref: str) -> Run | None:
    if not parent_ref:
        return None
    run = Run.objects.filter(ref=parent_ref).first()
    if run is None:
        raise NotFound("run", parent_ref)
    return run


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for by whom, and the digest of it."""

    actor: Actor
    given: Json
    business_ref: str
    intent: str
    start_key: str
    asked: str
    accounts: Mapping[str, StepAccount]
    parent: Run | None = None


def _once(request: Request, create: Callable[[], Run]) -> Started:
    try:
        with durable():
            run = create()
            faultpoints.mark("start", run=run.ref)
    except IntegrityError:
        # The same start arrived twice at once; the other one is stored by now.
        if stored := _stored(request.actor, request.start_key, request.asked):
            return stored
        raise
    return Started(run_ref=run.ref, created=True)


def _stored(actor: Actor, start_key: str, asked: str) -> Started | None:
    run = Run.objects.filter(started_by=actor.id, start_key=start_key).only("ref", "start_digest").first()
    if run is None:
        return None
    if run.start_digest != asked:
        raise StartKeyConflict(
            f"The start key {start_key!r} began {run.ref} with other content. Use a new key for a new run."
        )
    return Started(run_ref=run.ref, created=False)


def run_ref(actor: Actor, start_key: str) -> str:
    """The run's reference, from which all its keys derive: reproducible from who starts and the start key (S4-12)."""
    raw = hashlib.sha256(f"{actor.id}\x00{start_key}".encode()).digest()
    return "run_" + base64.b32encode(raw).decode().lower()[:13]


def create(row: DefinitionVersion, workflow: Definition, request: Request) -> Run:
    """Put a run with all its actions on record, inside the caller's transaction. Raises `Retired`."""
    actor = request.actor
    # Under this lock no version goes out of use between the look and the commit.
    lock_freeze_shared()
    must_be_in_use(row)
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_()")
        (now,) = cursor.fetchone()
    run = store(
        Run(
            ref=run_ref(actor, request.start_key),
            definition=row,
            parent=request.parent,
            due_at=now,
            seq=1,
            input=request.given,
            intent=request.intent,
            team=workflow.team,
            start_key=request.start_key,
            start_digest=request.asked,
            started_by=actor.id,
            started_by_name=actor.name,
            started_at=now,
            changed_at=now,
            **_business(workflow, request.given, request.business_ref),
        )
    )
    # Bit by bit: PostgreSQL ends a transaction in which thousands of steps are made ready before the first one is stored.
    for some in batched(_actions(run, row, workflow, request.accounts), STORED_AT_ONCE):
        Action.objects.bulk_create(some)
    entry = EntryRow(
        name="run.started",
        actor=actor,
        run_id=run.pk,
        run_ref=run.ref,
        seq=1,
        machine=Machine.RUN.value,
        object_id=run.pk,
        object_version=1,
        target=RunState.RUNNING.value,
        reason=request.intent,
        after={
            "definition": row.name or "",
            "version": workflow.version,
            "digest": row.digest,
            "business_ref": run.business_ref,
            "remedy_for": request.parent.ref if request.parent else "",
            "accounts": {step: asdict(account) for step, account in request.accounts.items()},
        },
    )
    with connection.cursor() as cursor:
        entries.insert(cursor, [entry])
    add(Outbox, {"run_id": run.pk, "seq_from": 1, "seq_to": 1})
    return run


def _business(workflow: Definition, given: Json, business_ref: str) -> dict[str, Any]:
    business, scope = workflow.business, {"input": given}

    def word(binding: Json) -> str:
        try:
            value = bind(binding, scope)
        except Unbindable:
            return ""
        return "" if value is None else str(value)

    return {
        "title": fill(business.title, args=given) if business.title else workflow.title,
        "business_ref": business_ref or word(business.reference),
        "customer": word(business.customer),
        "amount": word(business.amount),
        "currency": business.currency,
    }


def _actions(
    run: Run, row: DefinitionVersion, workflow: Definition, accounts: Mapping[str, StepAccount]
) -> Iterator[Action]:
    for position, step in enumerate(workflow.steps, start=1):
        pk, contract = pinned(row.pk, step.tool)
        account = accounts.get(step.id, StepAccount())
        yield Action(
            run=run,
            contract_id=pk,
            step=step.id,
            position=position,
            tool=step.tool,
            key=forward_key(run.ref, step.id, "", contract.operation, 1),
            why=account.why or step.why,
            evidence_note=account.evidence,
        )
