"""The views of the interface: authenticate, translate, hand on. No rule lives here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db import OperationalError
from rest_framework import exceptions
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from sagas import api
from sagas.errors import NotFound
from sagas.facts import Actor, AdHocStep, Started, StepAccount
from workbench.api import documents
from workbench.api.callers import caller_of, named
from workbench.api.parsers import StrictJson
from workbench.api.problems import respond
from workbench.api.serializers import MakePreview, Replan, StartRun, command_body
from workbench.api.tokens import TokenAuthentication
from workbench.commands import (
    COMMANDS,
    SIGNOFF_COMMANDS,
    SYSTEM_COMMANDS,
    Result,
    available,
    dispatch,
    make_preview,
    sessions,
    signoff_offers,
)
from workbench.policies import Permission
from workbench.roles import Scope

PAGE, LARGEST_PAGE = 50, 200
LOCK_TIMEOUT = "55P03"
_KEY = re.compile(r'"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"|([\x21\x23-\x5b\x5d-\x7e]{1,255})')


class Door(APIView):
    """What all views share: a token, or the session of a person."""

    authentication_classes = (TokenAuthentication, SessionAuthentication)
    parser_classes = (StrictJson,)


class Runs(Door):
    """`POST /runs` starts a run once per key; `GET /runs` lists the caller's runs, newest first."""

    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require(scope=Scope.START_RUNS, permission=Permission.START)
        key = idempotency_key(request)
        body = StartRun(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        try:
            started = start(caller.actor, given, key)
        except NotFound:
            errors = [("/definition", "No workflow of this name and version is published.")]
            return respond(422, "no_such_definition", "Nothing was started.", errors)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) != LOCK_TIMEOUT:
                raise
            detail = "The first request with this Idempotency-Key is still running."
            return respond(409, "busy", detail, headers={"Retry-After": "1"})
        if started.created:
            api.ring(started.run_ref)
        location = reverse("api:run", args=[started.run_ref])
        headers = {"Location": location} if started.created else {"Idempotency-Replayed": "true"}
        facts = api.run_facts(started.run_ref)
        return Response(documents.run(facts), status=201 if started.created else 200, headers=headers)

    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require(scope=Scope.READ_RUNS, permission=Permission.READ)
        try:
            page = api.runs(
                after=request.query_params.get("after", ""),
                limit=page_size(request),
                search=request.query_params.get("search", "").replace("\x00", ""),
                started_by=caller.own_runs_only,
            )
        except ValueError:
            raise exceptions.ValidationError({"after": ["This is not the key of a page."]}) from None
        return Response({"runs": [documents.run_row(row) for row in page.rows], "after": page.after or None})


def start(actor: Actor, given: Mapping[str, Any], key: str) -> Started:
    """A start from a definition or from a list of steps; the engine's errors as they come."""
    if "steps" in given:
        return api.start_steps(
            actor=actor,
            steps=[AdHocStep(**step) for step in given["steps"]],
            title=given["title"],
            business_ref=given["business_ref"],
            intent=given["intent"],
            start_key=key,
            parent_ref=given["remedy_for"],
        )
    accounts = {step: StepAccount(**account) for step, account in given.get("accounts", {}).items()}
    return api.start_run(
        actor=actor,
        definition=given["definition"],
        version=given.get("version"),
        input=given["input"],
        business_ref=given["business_ref"],
        intent=given["intent"],
        start_key=key,
        accounts=accounts,
    )


class Replans(Door):
    """`POST /runs/{ref}/replans`: a planner says that, and why, it goes another way. Nothing else changes."""

    def post(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require(scope=Scope.START_RUNS, permission=Permission.START)
        facts = caller.run(ref)
        body = Replan(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        api.record_replan(facts.ref, actor=caller.actor, **given)
        return Response(documents.run(caller.run(ref)), status=201)


class RunDetail(Door):
    """`GET /runs/{ref}`: the facts of one run, for those for whom it exists."""

    def get(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require(scope=Scope.READ_RUNS, permission=Permission.READ)
        return Response(documents.run(caller.run(ref)))


class HandoffDetail(Door):
    """`GET /handoffs/{ref}`: the case with every offer, allowed or not. For people only."""

    def get(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        facts = api.handoff_facts(named(ref))
        offers = available(facts, caller.actor, caller.person)
        return Response(
            {
                **documents.run(facts),
                "offers": [documents.offer(given) for given in offers],
                "proposal": documents.proposal(facts),
            }
        )


class Previews(Door):
    """`POST /handoffs/{ref}/previews`: what a verb would do. Refused as the verb itself would be."""

    def post(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        body = MakePreview(data=request.data)
        body.is_valid(raise_exception=True)
        facts = api.handoff_facts(named(ref))
        preview = make_preview(
            actor=caller.actor,
            person=caller.person,
            facts=facts,
            verb=body.validated_data["verb"],
            step=body.validated_data["step"],
            arguments=body.validated_data["arguments"],
        )
        return Response(documents.preview(preview), status=201)


class RunPreviews(Door):
    """`POST /runs/{ref}/previews`: what a verb would do to a run, whether a person is asked about it or not."""

    def post(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        body = MakePreview(data=request.data)
        body.is_valid(raise_exception=True)
        if not COMMANDS[body.validated_data["verb"]].anytime:
            raise exceptions.NotFound
        preview = make_preview(
            actor=caller.actor,
            person=caller.person,
            facts=caller.run(ref),
            verb=body.validated_data["verb"],
        )
        return Response(documents.preview(preview), status=201)


class RunCommands(Door):
    """`POST /runs/{ref}/commands/{verb}`: a stop at any moment; an agent may order it of a run of its own (S4-21)."""

    def post(self, request: Request, ref: str, verb: str) -> Response:
        caller = caller_of(request)
        if verb not in COMMANDS or not COMMANDS[verb].anytime:
            raise exceptions.NotFound
        caller.require(scope=Scope.STOP_RUNS, permission=Permission.READ)
        facts = caller.run(ref)
        key = idempotency_key(request)
        body = command_body(verb)(data=request.data)
        body.is_valid(raise_exception=True)
        arguments = dict(body.validated_data)
        result = dispatch(
            actor=caller.actor,
            person=caller.person,
            verb=verb,
            run_ref=facts.ref,
            command_id=key,
            saw_version=arguments.pop("saw_version", None),
            preview_id=arguments.pop("preview", ""),
            arguments=arguments,
            door="api",
        )
        return answer(result)


class Signoffs(Door):
    """`GET /signoffs`: the open requests by expiry, or with `view=decided` the others. For people only."""

    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        decided = request.query_params.get("view") == "decided"
        try:
            page = api.signoffs(
                decided=decided, after=request.query_params.get("after", ""), limit=page_size(request)
            )
        except ValueError:
            raise exceptions.ValidationError({"after": ["This is not the key of a page."]}) from None
        rows = [documents.signoff_row(row) for row in page.rows]
        return Response({"signoffs": rows, "after": page.after or None})


class SignoffDetail(Door):
    """`GET /signoffs/{ref}`: what is signed, with its digest, and whether the caller may. For people only."""

    def get(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        found = api.signoff_facts(named(ref))
        offers = signoff_offers(found, caller.actor, caller.person)
        return Response(documents.signoff(found, api.signed_call(found), offers))


class SignoffCommands(Door):
    """`POST /signoffs/{ref}/sign|reject`: the digest that was read goes back with it. No token ever signs (E-3)."""

    def post(self, request: Request, ref: str, verb: str) -> Response:
        caller = caller_of(request)
        if verb not in SIGNOFF_COMMANDS:
            raise exceptions.NotFound
        key = idempotency_key(request)
        body = command_body(verb)(data=request.data)
        body.is_valid(raise_exception=True)
        arguments = dict(body.validated_data)
        arguments.pop("preview", "")
        result = dispatch(
            actor=caller.actor,
            person=caller.person,
            verb=verb,
            signoff_ref=ref,
            command_id=key,
            saw_version=arguments.pop("saw_version", None),
            arguments=arguments,
            door="api",
            confirmed=caller.person is None or sessions.is_fresh(request.session),
        )
        return answer(result)


class Commands(Door):
    """`POST [/handoffs/{ref}]/commands/{verb}`: the Idempotency-Key is the command id."""

    def post(self, request: Request, verb: str, ref: str = "") -> Response:
        caller = caller_of(request)
        if verb not in (COMMANDS if ref else SYSTEM_COMMANDS):
            raise exceptions.NotFound
        key = idempotency_key(request)
        body = command_body(verb)(data=request.data)
        body.is_valid(raise_exception=True)
        arguments = dict(body.validated_data)
        result = dispatch(
            actor=caller.actor,
            person=caller.person,
            verb=verb,
            handoff_ref=ref,
            command_id=key,
            saw_version=arguments.pop("saw_version", None),
            preview_id=arguments.pop("preview", ""),
            arguments=arguments,
            door="api",
        )
        return answer(result)


def answer(result: Result) -> Response:
    """A result as a response: a document, or a problem with the same parts."""
    shared = documents.result(result)
    headers = {"Idempotency-Replayed": "true"} if result.replayed else {}
    headers |= {"Retry-After": str(result.wait_s)} if result.wait_s else {}
    if result.accepted:
        document = {"detail": str(result.sentence), **shared}
        return Response(document, status=result.http_status, headers=headers)
    errors = [(f"/{name}", str(sentence)) for name, sentence in result.field_errors.items()]
    return respond(result.http_status, result.code, str(result.sentence), errors, headers, **shared)


def idempotency_key(request: Request) -> str:
    """The key of a request that must not run twice, bare or as a quoted string. Raises ParseError (400)."""
    given = request.headers.get("Idempotency-Key", "").strip()
    if not given:
        raise exceptions.ParseError("The header Idempotency-Key is needed.", code="idempotency_key_missing")
    found = _KEY.fullmatch(given)
    if found is None:
        raise exceptions.ParseError(
            "The header Idempotency-Key holds 1 to 255 plain characters.", code="idempotency_key_invalid"
        )
    return found[1] or found[2]


def page_size(request: Request) -> int:
    """The `limit` of a list, at most 200. Raises ValidationError."""
    given: Any = request.query_params.get("limit", str(PAGE))
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= LARGEST_PAGE:
        raise exceptions.ValidationError({"limit": [f"Write a number from 1 to {LARGEST_PAGE}."]})
    return int(given)
