"""`POST /callbacks/{tool}`: where systems report the end of what they had only accepted.

Proves the sender by the contract's signature, keeps what it says as evidence, decides nothing.
"""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sagas import api
from tools import callbacks
from tools.payload import Unreadable, parse
from workbench.api.problems import respond

LARGEST = 1_048_576


class Callbacks(APIView):
    """One callback. A second delivery of the same is answered like the first and changes nothing."""

    authentication_classes = ()
    permission_classes = ()

    def post(self, request: Request, tool: str) -> Response:
        """Keep what the sender says. 401 for a signature that does not fit, 404 for a tool without callbacks."""
        contract = api.newest_contract(tool)
        rules = contract.callback if contract is not None else None
        if contract is None or rules is None:
            return respond(404, "not_found", "No tool of this name calls back here.")
        raw = request._request.body if int(request.META.get("CONTENT_LENGTH") or 0) <= LARGEST else b""
        header = request.headers.get(rules.signature, "")
        secret = settings.CALLBACK_SECRETS.get(rules.secret, "")
        if not raw or not callbacks.is_genuine(secret, header, raw, now=timezone.now()):
            return respond(401, "bad_signature", "The signature does not fit. Nothing was kept.")
        try:
            said = callbacks.read(contract, parse(raw))
        except Unreadable as error:
            return respond(422, "unreadable", f"The body cannot be read: {error}")
        if said is None:
            return respond(422, "names_no_call", "The body names neither a key nor a reference of ours.")
        received = api.receive(
            api.Callback(
                system=contract.system,
                verdict=said.verdict,
                key=said.key,
                reference=said.reference,
                result=said.result,
                detail=said.detail,
                at=said.at,
                version=said.version,
            )
        )
        if received.run_ref and not received.repeated:
            api.ring(received.run_ref)
        return Response({"kept": True, "repeated": received.repeated}, status=200)
