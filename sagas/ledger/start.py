"""The start of a run: idempotent on (who starts, start key), everything on record before anything moves."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from django.db import IntegrityError, connection

from sagas import entries
from sagas.entries import EntryRow
from sagas.errors import InvalidInput, StartKeyConflict
from sagas.facts import Actor, Started
from sagas.models import Action, DefinitionVersion, Outbox, Run
from sagas.published import definition_by_id, find_definition, pinned
from sagas.states import Machine, RunState
from sagas.tx import durable
from tools.bindings import Unbindable, bind
from tools.canonical import digest
from tools.contract import Json
from tools.definition import Definition
from tools.json_schema import schema_faults
from tools.keys import forward_key
from tools.texts import fill


def start_run(
    *,
    actor: Actor,
    definition: str,
    version: int | None = None,
    input: Json,
    business_ref: str = "",
    intent: str = "",
    start_key: str,
) -> Started:
    """Start a run of a published workflow, or return the run that this start key began (S1-9).

    Raises `NotFound`, `InvalidInput`, `StartKeyConflict`.
    """
    row = find_definition(definition, version)
    asked = digest(
        {"definition": definition, "version": version, "input": input, "business_ref": business_ref}
    )
    if stored := _stored(actor, start_key, asked):
        return stored
    workflow = definition_by_id(row.pk)
    faults = schema_faults(workflow.input_schema, input)
    if faults:
        raise InvalidInput(faults)
    try:
        with durable():
            run = _create(row, workflow, actor, input, business_ref, intent, start_key, asked)
    except IntegrityError:
        # The same start arrived twice at once; the other one is stored by now.
        if stored := _stored(actor, start_key, asked):
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


def _create(
    row: DefinitionVersion,
    workflow: Definition,
    actor: Actor,
    given: Json,
    business_ref: str,
    intent: str,
    start_key: str,
    asked: str,
) -> Run:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now_()")
        (now,) = cursor.fetchone()
    run = Run.objects.create(
        ref=run_ref(actor, start_key),
        definition=row,
        due_at=now,
        seq=1,
        input=given,
        intent=intent,
        team=workflow.team,
        start_key=start_key,
        start_digest=asked,
        started_by=actor.id,
        started_by_name=actor.name,
        started_at=now,
        changed_at=now,
        **_business(workflow, given, business_ref),
    )
    Action.objects.bulk_create(_actions(run, row, workflow))
    with connection.cursor() as cursor:
        entries.insert(
            cursor,
            [
                EntryRow(
                    name="run.started",
                    actor=actor,
                    run_id=run.pk,
                    run_ref=run.ref,
                    seq=1,
                    machine=Machine.RUN.value,
                    object_id=run.pk,
                    object_version=1,
                    target=RunState.RUNNING.value,
                    reason=intent,
                    after={
                        "definition": workflow.name,
                        "version": workflow.version,
                        "digest": row.digest,
                        "business_ref": run.business_ref,
                    },
                )
            ],
        )
    Outbox.objects.create(run_id=run.pk, seq_from=1, seq_to=1)
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


def _actions(run: Run, row: DefinitionVersion, workflow: Definition) -> list[Action]:
    actions = []
    for position, step in enumerate(workflow.steps, start=1):
        pk, contract = pinned(row.pk, step.tool)
        actions.append(
            Action(
                run=run,
                contract_id=pk,
                step=step.id,
                position=position,
                tool=step.tool,
                key=forward_key(run.ref, step.id, "", contract.operation, 1),
                why=step.why,
            )
        )
    return actions
