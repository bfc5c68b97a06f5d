"""Calls a Python function as a tool: in a child process that is killed at its limit, or in this process.

Only functions marked with `@tool` can be named by a contract. Judges nothing, retries and raises nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any

from tools.contract import Contract, Json, PythonCall
from tools.outcome import Observation, Seen
from tools.payload import Unreadable, as_text, parse, whole_members

type Callable_ = Callable[..., Json]

_MARK = "__amends_tool__"
_PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")
_DETAIL_LONGEST = 500
STARTED = b"started\n"


class ToolAnswer(Exception):
    """Raised by a tool to answer with a status of the same table as over HTTP, and a JSON body."""

    def __init__(self, status: int, body: Json = None) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.body = body


class NoSuchTool(Exception):
    """The target names no function marked with `@tool`."""


def tool[F: Callable_](function: F) -> F:
    """Mark a function as one that a contract may name. It is called as `function(args, key=key)`."""
    setattr(function, _MARK, True)
    return function


def find_tool(target: str) -> Callable_:
    """The function behind `module:name`. Raises `NoSuchTool`."""
    module_name, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except Exception as error:  # noqa: BLE001 - importing runs foreign code; nothing has been called yet
        raise NoSuchTool(f"{module_name} cannot be imported: {type(error).__name__}") from None
    if not callable(found) or getattr(found, _MARK, False) is not True:
        raise NoSuchTool(f"{target} is no function marked as a tool")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of a function that was called: a status with a JSON text, or the error that it raised.

    `text` may be cut off one character beyond the limit, which is how a result that is too large is known.
    """

    status: int | None
    text: str = ""
    raised: str = ""


def run(function: Callable_, args: Json, key: str) -> Reply:
    """Call the function. Everything it may raise becomes a `Reply`."""
    try:
        status, body = 200, function(args, key=key)
    except ToolAnswer as answer:
        status, body = answer.status, answer.body
    except BaseException as error:  # noqa: BLE001 - also SystemExit: a tool must not end its caller
        return Reply(status=None, raised=f"{type(error).__name__}: {error}"[:_DETAIL_LONGEST])
    try:
        return Reply(status=status, text=json.dumps(body, allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        return Reply(status=status, text=f"no JSON: {type(error).__name__}")


def call(
    contract: Contract,
    *,
    args: Json,
    key: str,
    total_s: float,
    may_send: Callable[[], bool] = lambda: True,
) -> Observation:
    """What was seen. A child ends within `total_s` seconds; `trusted_fast` is not interrupted."""
    start = time.monotonic()
    if not isinstance(contract.call, PythonCall):
        return Observation(seen=Seen.REFUSED_HERE, detail="the contract declares no Python call")
    if contract.call.trusted_fast:
        seen = _in_process(contract, contract.call, args, key, may_send)
    else:
        seen = _in_child(contract, contract.call, args, key, start + total_s, may_send)
    return replace(seen, duration_ms=round((time.monotonic() - start) * 1000))


def _in_process(
    contract: Contract, target: PythonCall, args: Json, key: str, may_send: Callable[[], bool]
) -> Observation:
    try:
        function = find_tool(target.target)
    except NoSuchTool as error:
        return Observation(seen=Seen.NOT_SENT, detail=str(error))
    if not may_send():
        return Observation(seen=Seen.NOT_SENT, detail="the window for sending had closed")
    # A copy: what the tool does to its arguments must not reach our record of them.
    reply = run(function, json.loads(json.dumps(args)), key)
    return _observation(reply, contract.limits.body_bytes)


def _observation(reply: Reply, limit: int) -> Observation:
    if reply.status is None:
        return Observation(seen=Seen.RAISED, detail=reply.raised)
    raw = reply.text.encode("utf-8", "replace")
    facts = {
        "status": reply.status,
        "body_bytes": len(raw),
        "body_sha256": hashlib.sha256(raw).hexdigest(),
    }
    if len(raw) > limit:
        detail = f"the result is larger than {limit} bytes"
        return Observation(
            seen=Seen.TOO_LARGE,
            body=_members(raw),
            body_text=as_text(raw),
            detail=detail,
            **facts,  # type: ignore[arg-type]
        )
    try:
        return Observation(seen=Seen.ANSWER, body=parse(raw), **facts)  # type: ignore[arg-type]
    except Unreadable as error:
        detail = f"the result is {error}"
        return Observation(seen=Seen.BAD_BODY, body_text=as_text(raw), detail=detail, **facts)  # type: ignore[arg-type]


def _members(raw: bytes) -> Json:
    try:
        return whole_members(raw)
    except Unreadable:
        return None


def _in_child(
    contract: Contract,
    target: PythonCall,
    args: Json,
    key: str,
    until: float,
    may_send: Callable[[], bool],
) -> Observation:
    limit = contract.limits.body_bytes
    try:
        request = json.dumps(
            {"target": target.target, "args": args, "key": key, "limit": limit}, allow_nan=False
        )
    except (ValueError, TypeError, RecursionError) as error:
        return Observation(seen=Seen.REFUSED_HERE, detail=f"the arguments are no JSON: {error}")
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "tools.adapters.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _python_path(),
            start_new_session=True,
        )
    except OSError as error:
        return Observation(seen=Seen.NOT_SENT, detail=f"no child process: {error.strerror}")
    try:
        return _talk(child, request, until, limit, may_send)
    finally:
        _kill(child)


def _python_path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _talk(
    child: subprocess.Popen[bytes], request: str, until: float, limit: int, may_send: Callable[[], bool]
) -> Observation:
    pipes = _Pipes(child, until)
    ready = pipes.line()
    if ready != b"ready\n":
        return Observation(seen=Seen.NOT_SENT, detail="the child process did not get ready")
    if not may_send():
        return Observation(seen=Seen.NOT_SENT, detail="the window for sending had closed")
    pipes.send(request.encode() + b"\n")
    first = pipes.line()
    if first != STARTED:
        told = first.decode("utf-8", "replace").removeprefix("refused ").strip()
        # Silence here may mean that the function runs already: only a spoken refusal proves the contrary.
        if first.startswith(b"refused "):
            return Observation(seen=Seen.NOT_SENT, detail=told[:_DETAIL_LONGEST])
        return Observation(seen=Seen.NO_ANSWER, detail="the child process fell silent")
    raw = pipes.rest()
    try:
        reply = Reply(**json.loads(raw))
    except (ValueError, TypeError):
        late = (
            "no result within the limit" if pipes.out_of_time else "the child process ended without a result"
        )
        return Observation(seen=Seen.NO_ANSWER, detail=late)
    return _observation(reply, limit)


class _Pipes:
    """The two pipes to a child, read and written no later than the deadline."""

    def __init__(self, child: subprocess.Popen[bytes], until: float) -> None:
        if child.stdin is None or child.stdout is None:
            raise ValueError("the child was started without pipes")
        self._stdin: IO[bytes] = child.stdin
        self._stdout: IO[bytes] = child.stdout
        self._until = until
        self._read = b""
        self._ended = False
        self.out_of_time = False
        os.set_blocking(self._stdin.fileno(), False)

    def send(self, data: bytes) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._stdin, selectors.EVENT_WRITE)
            while data and self._wait(waiting):
                try:
                    data = data[os.write(self._stdin.fileno(), data) :]
                except BrokenPipeError:
                    return

    def line(self) -> bytes:
        """The next line with its end, or what there is when time or the pipe ends."""
        while b"\n" not in self._read and self._more():
            pass
        head, end, self._read = self._read.partition(b"\n")
        return head + end

    def rest(self) -> bytes:
        """Everything up to the end of the pipe; the child bounds it."""
        while self._more():
            pass
        return self._read

    def _more(self) -> bool:
        if self._ended:
            return False
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._stdout, selectors.EVENT_READ)
            if not self._wait(waiting):
                return False
        chunk = os.read(self._stdout.fileno(), 65_536)
        self._ended = not chunk
        self._read += chunk
        return bool(chunk)

    def _wait(self, waiting: selectors.BaseSelector) -> bool:
        left = self._until - time.monotonic()
        if left > 0 and waiting.select(left):
            return True
        self.out_of_time = True
        return False


def _kill(child: subprocess.Popen[Any]) -> None:
    """Ends the child and everything it started: its whole process group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue
    child.wait()
