"""The door to the outside world: one call under a contract, and what was seen of it.

Owns which adapter makes a call, the check of the arguments before it and of the answer's schema after it.
Judges no outcome (`tools.outcome` does), retries nothing, keeps nothing between calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tools.adapters import http, python
from tools.contract import Contract, HttpCall, Json
from tools.json_schema import schema_fault
from tools.outcome import Observation, Seen
from tools.redact import mask, mask_text, own_secrets, without
from tools.texts import fill, inert


@dataclass(frozen=True, kw_only=True)
class CallText:
    """A call as people read it before it is made; secrets are masked."""

    method: str
    url_path: str
    body: Json
    summary: str


def boot_time() -> float:
    """Seconds of the clock that `send_before` is read on: it goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class World:
    """Makes calls to the systems whose base addresses it knows. One for all threads."""

    def __init__(self, systems: Mapping[str, str]) -> None:
        self._systems = dict(systems)
        self._http = http.HttpAdapter(tls=any(url.startswith("https:") for url in self._systems.values()))

    def close(self) -> None:
        """Drop what is still open."""
        self._http.close()

    def call(
        self,
        contract: Contract,
        *,
        args: Json,
        key: str,
        headers: Mapping[str, str] | None = None,
        time_limit_s: float | None = None,
        send_before: float | None = None,
        passing: Callable[[str], None] = lambda stage: None,
    ) -> Observation:
        """Make the call once and say what was seen. Raises nothing for anything the world does.

        Ends within the contract's total limit, or `time_limit_s` seconds if that is less. With `send_before`
        (on `boot_time`) no byte leaves at or after that moment, checked as the last act before the first byte
        (engine.md, section 3). `passing` is told of each stage: "before_first_byte", just before that check, and
        "awaiting_answer", once the request has left.
        """
        if fault := schema_fault(contract.args_schema, args):
            detail = f"the arguments do not fit the contract: {fault}"
            return Observation(seen=Seen.REFUSED_HERE, detail=detail, key=key)
        total_s = min(
            contract.limits.total_s, contract.limits.total_s if time_limit_s is None else time_limit_s
        )
        seen = self._seen(contract, args, key, headers or {}, total_s, _window(send_before, passing), passing)
        if seen.seen is Seen.ANSWER and 200 <= (seen.status or 0) <= 299:
            return replace(seen, key=key, schema_fault=_answer_fault(contract, seen))
        # Nothing is bound out of what is no success: whatever of our own secrets it says back goes.
        secrets = own_secrets(args, contract.secret_fields)
        body, told = without(seen.body, secrets), str(without(seen.detail, secrets))
        text = str(without(seen.body_text, secrets))
        if seen.seen is Seen.ANSWER:
            fault = _answer_fault(contract, seen)
            return replace(seen, key=key, schema_fault=fault, body=body, body_text=text, detail=told)
        # What could not be read cannot be masked by field, so everything that looks like a secret goes.
        return replace(seen, key=key, detail=mask_text(inert(told)), body=body, body_text=mask_text(text))

    def _seen(
        self,
        contract: Contract,
        args: Json,
        key: str,
        headers: Mapping[str, str],
        total_s: float,
        may_send: Callable[[], bool],
        passing: Callable[[str], None],
    ) -> Observation:
        if not isinstance(contract.call, HttpCall):
            return python.call(contract, args=args, key=key, total_s=total_s, may_send=may_send)
        try:
            written = http.write_down(contract, args=args, key=key, headers=headers)
        except http.Unsound as error:
            return Observation(seen=Seen.REFUSED_HERE, detail=str(error))
        base_url = self._systems.get(contract.system)
        if base_url is None:
            return Observation(seen=Seen.NOT_SENT, detail=f"the system {contract.system} has no address")
        return self._http.call(
            contract,
            written,
            base_url=base_url,
            total_s=total_s,
            may_send=may_send,
            asked=lambda: passing("awaiting_answer"),
        )

    def describe(self, contract: Contract, *, args: Json, key: str) -> CallText:
        """The call as it would be made, for a preview; nothing is sent. Secret fields are masked."""
        shown = mask({"args": args}, contract.secret_fields)["args"]
        title = fill(contract.texts.title, args=shown)
        if not isinstance(contract.call, HttpCall):
            return CallText(
                method="CALL", url_path=contract.call.target, body=shown, summary=f"{title} ({contract.tool})"
            )
        try:
            written = http.write_down(contract, args=shown, key=key, headers={})
            path, body = written.path, http.body_of(contract.call, args=shown, key=key)
        except http.Unsound as error:
            path, body = contract.call.path, f"cannot be written down: {error}"
        path = f"{contract.system}:{path}"
        return CallText(method=contract.call.method.upper(), url_path=path, body=body, summary=title)


def _window(send_before: float | None, passing: Callable[[str], None]) -> Callable[[], bool]:
    def may_send() -> bool:
        passing("before_first_byte")
        return send_before is None or boot_time() < send_before

    return may_send


def _answer_fault(contract: Contract, seen: Observation) -> str:
    success = seen.status is not None and 200 <= seen.status <= 299
    return schema_fault(contract.result_schema if success else contract.errors.schema, seen.body)
