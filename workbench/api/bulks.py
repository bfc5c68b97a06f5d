"""Bulks over REST: freeze a list, start, pause, continue or stop it, read how far it is, take the report. People only."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from workbench.api.callers import caller_of, named
from workbench.api.serializers import Strict, command_body
from workbench.api.views import LARGEST_PAGE, Door, answer, idempotency_key, page_size
from workbench.bulks import Chosen, freeze_list, report
from workbench.commands import dispatch
from workbench.policies import Permission
from workbench.queries import bulks
from workbench.queries.bulks import BulkFacts, MemberFacts

ACTS = {"start": "bulk_start", "pause": "bulk_pause", "continue": "bulk_continue", "stop": "bulk_stop"}


class Picked(Strict):
    """One case of a selection with the version that was seen."""

    handoff = serializers.CharField(max_length=100)
    saw_version = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=2_147_483_647
    )


class MakeList(Strict):
    """The body of a selection: a verb and its cases."""

    verb = serializers.CharField(max_length=40)
    cases = Picked(many=True, allow_empty=True)


class Bulks(Door):
    """`POST /bulks` freezes a list and sends nothing; `GET /bulks` lists those that were started, newest first."""

    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        body = MakeList(data=request.data)
        body.is_valid(raise_exception=True)
        cases = [
            Chosen(handoff_ref=one["handoff"], version=one.get("saw_version"))
            for one in body.validated_data["cases"]
        ]
        ref = freeze_list(
            actor=caller.actor, person=caller.person, verb=body.validated_data["verb"], cases=cases
        )
        headers = {"Location": reverse("api:bulk", args=[ref])}
        return Response(_document(bulks.bulk(ref), whole=True), status=201, headers=headers)

    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        return Response({"bulks": [_document(one) for one in bulks.recent(limit=page_size(request))]})


class BulkDetail(Door):
    """`GET /bulks/{ref}`: how far it is and a page of its cases with their results (`after`, `limit`, `state`)."""

    def get(self, request: Request, ref: str) -> Response:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        asked = request.query_params
        after = asked.get("after", "0")
        if not after.isascii() or not after.isdigit() or len(after) > 9:
            raise exceptions.ValidationError({"after": ["This is not the key of a page."]})
        states = (asked["state"],) if asked.get("state") else ()
        return Response(
            _document(
                bulks.bulk(named(ref)), whole=True, after=int(after), limit=page_size(request), states=states
            )
        )


class BulkCommands(Door):
    """`POST /bulks/{ref}/start|pause|continue|stop`: the Idempotency-Key is the command id."""

    def post(self, request: Request, ref: str, act: str) -> Response:
        caller = caller_of(request)
        if act not in ACTS:
            raise exceptions.NotFound
        verb, key = ACTS[act], idempotency_key(request)
        if not isinstance(request.data, dict):
            raise exceptions.ParseError("The body is a JSON object.")
        body = command_body(verb)(data={**request.data, "bulk": named(ref)})
        body.is_valid(raise_exception=True)
        arguments = {
            name: value
            for name, value in body.validated_data.items()
            if name not in ("saw_version", "preview")
        }
        result = dispatch(
            actor=caller.actor,
            person=caller.person,
            verb=verb,
            command_id=key,
            arguments=arguments,
            door="api",
        )
        return answer(result)


class BulkReport(Door):
    """`GET /bulks/{ref}/report.csv|jsonl`: every case with its result, and whether it is settled, waived or open."""

    def get(self, request: Request, ref: str, form: str) -> HttpResponse:
        caller = caller_of(request)
        caller.require_permission(Permission.READ)
        lines = report.taken(bulks.bulk(named(ref)), actor=caller.actor, form=form)
        kind = "text/csv" if form == "csv" else "application/jsonl"
        return HttpResponse("".join(lines), content_type=f"{kind}; charset=utf-8")


def _document(
    facts: BulkFacts,
    *,
    whole: bool = False,
    after: int = 0,
    limit: int = LARGEST_PAGE,
    states: tuple[str, ...] = (),
) -> dict[str, Any]:
    document = report.head(facts) | {
        "included": facts.included,
        "type_count": facts.typed,
        "canary": facts.canary,
        "expires_at": facts.expires_at.isoformat(),
        "possible": dict(facts.possible),
    }
    if not whole:
        return document
    page = bulks.members(facts.ref, states=states, after=after, limit=limit)
    following = page[-1].position if len(page) == limit else None
    return {**document, "cases": [_case(one) for one in page], "after": following}


def _case(one: MemberFacts) -> dict[str, Any]:
    return {**report.row(one), "says": str(one.said), "calls": list(one.calls), "stays": list(one.stays)}
