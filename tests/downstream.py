"""A downstream for any tool that was imported: a process of its own, standard library only, loopback only.

`python -m tests.downstream FILE` writes {"url"} to FILE when it is ready. It knows a tool by what it is told at
`/_/tools`, keeps count of arrivals and effects, and misbehaves as it is told at `/_/plan`. It knows nothing of runs.

Tools: {"system", "operation", "role": do | compensate | query | read, "fields": [names of its result], "of": the
operation that a compensation makes up for}. Rules: {"operation", "system", "match": parts of key or arguments,
any of which is enough, "attempts": [1, ...] or none for all, "mode": one of rejected, unavailable, answer_lost,
request_lost}.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, dict[str, Any]] | None
"""Status and body; None: the connection is closed without a word."""


@dataclass(kw_only=True)
class Effect:
    """What a call left behind. `gone`: something made up for it."""

    system: str
    operation: str
    key: str
    args: dict[str, Any]
    result: dict[str, Any]
    gone: bool = False


@dataclass
class Downstream:
    """All systems at once: their tools, what took effect, and how they misbehave."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    tools: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    hits: dict[int, int] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)

    def call(self, system: str, operation: str, key: str, args: dict[str, Any]) -> Answer:
        """One call of a tool, its misbehaviour included."""
        with self.lock:
            tool = self.tools.get((system, operation))
            if tool is None:
                return 404, {"error": f"{system} has no {operation}"}
            self._note("arrived", system, operation, key, args)
            rule = self._rule(system, operation, f"{key} {json.dumps(args)}")
            match rule.get("mode"):
                case "rejected":
                    error = rule.get("error", "Refused")
                    return 422, {"error": error, "message": f"{error}: {operation} is not possible any more"}
                case "unavailable":
                    return 503, {"error": "Unavailable"}
                case "request_lost":
                    return None
            answer = self._answer(tool, system, operation, key, args)
            return None if rule.get("mode") == "answer_lost" else answer

    def _rule(self, system: str, operation: str, text: str) -> dict[str, Any]:
        for number, rule in enumerate(self.rules):
            if (rule["system"], rule["operation"]) == (system, operation) and any(
                part in text for part in rule["match"]
            ):
                self.hits[number] = self.hits.get(number, 0) + 1
                attempts = rule.get("attempts")
                if attempts is None or self.hits[number] in attempts:
                    return rule
        return {}

    def _answer(
        self, tool: dict[str, Any], system: str, operation: str, key: str, args: dict[str, Any]
    ) -> Answer:
        match tool["role"]:
            case "read":
                return 200, {}
            case "query":
                return self._look(system, args)
        for effect in self.effects:
            if key and (effect.system, effect.operation, effect.key) == (system, operation, key):
                return 200, effect.result
        # An id names the call that made it, so that whoever plans a misbehaviour can name it as well.
        result = {name: f"{name}:{key}" for name in tool["fields"]}
        effect = Effect(system=system, operation=operation, key=key, args=args, result=result)
        if tool["role"] == "compensate":
            self._make_up(system, tool["of"], args)
        self.effects.append(effect)
        self._note("effect", system, operation, key, args)
        return 200, result

    def _look(self, system: str, args: dict[str, Any]) -> Answer:
        """By key: the call itself, or 404. By what it is about: whether `of` took effect for it, and still stands."""
        standing = [one for one in self.effects if one.system == system and not one.gone]
        if "key" in args:
            found = [one for one in standing if one.key == args["key"]]
            return (200, found[0].result) if found else (404, {"error": "nothing carries this key"})
        about = {name: value for name, value in args.items() if name != "of"}
        found = [
            one
            for one in standing
            if one.operation == args["of"] and all(str(one.args.get(n)) == v for n, v in about.items())
        ]
        return 200, {"applied": bool(found), **(found[0].result if found else {})}

    def _make_up(self, system: str, of: str, args: dict[str, Any]) -> None:
        given = {str(value) for value in args.values()}
        for one in self.effects:
            known = {str(value) for value in (*one.args.values(), *one.result.values())}
            if (one.system, one.operation) == (system, of) and not one.gone and known & given:
                one.gone = True
                return

    def _note(self, kind: str, system: str, operation: str, key: str, args: dict[str, Any]) -> None:
        self.ledger.append({"kind": kind, "system": system, "operation": operation, "key": key, "args": args})

    def command(self, name: str, body: Any) -> Any:
        """What the tests say and ask: `tools`, `plan`, `ledger`."""
        with self.lock:
            match name:
                case "tools":
                    self.tools |= {(tool["system"], tool["operation"]): tool for tool in body}
                case "plan":
                    self.rules += body
                case "ledger":
                    return self.ledger
        return {}


class Door(BaseHTTPRequestHandler):
    """`/SYSTEM/OPERATION` for tools, `/_/NAME` for commands."""

    world: ClassVar[Downstream] = Downstream()

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        self._serve(path.path, dict(parse_qsl(path.query, keep_blank_values=True)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._serve(self.path, json.loads(body or b"{}"))

    def _serve(self, path: str, content: Any) -> None:
        system, operation = path.strip("/").split("/")
        answer: Answer
        if system == "_":
            answer = 200, self.world.command(operation, content)
        else:
            answer = self.world.call(system, operation, self.headers.get("Idempotency-Key", ""), content)
        if answer is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, body = answer
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the ledger is the log."""


def main() -> None:
    """Serve until told to stop."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    announcement = Path(sys.argv[1])
    ready = announcement.with_suffix(".part")
    ready.write_text(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}"}))
    os.replace(ready, announcement)
    server.serve_forever()


if __name__ == "__main__":
    main()
