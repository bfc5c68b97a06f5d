"""The child process of a Python tool: says `ready`, reads one call, says `started`, calls, writes the reply.

It ends with its parent: at the end of its input, or by the kernel's signal where there is one. What the tool
prints goes nowhere near the reply.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from dataclasses import asdict, replace

from tools.adapters.python import STARTED, NoSuchTool, find_tool, run

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end_at_end_of_input() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def main() -> None:
    """Serve one call on standard input and output."""
    _die_with_parent()
    reply_to = os.dup(1)
    os.dup2(2, 1)
    os.write(reply_to, b"ready\n")
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_at_end_of_input, daemon=True).start()
    try:
        function = find_tool(request["target"])
    except NoSuchTool as error:
        os.write(reply_to, f"refused {error}\n".encode())
        os._exit(0)
    os.write(reply_to, STARTED)
    reply = run(function, request["args"], request["key"])
    reply = replace(reply, text=reply.text[: request["limit"] + 1])
    with os.fdopen(reply_to, "wb") as out:
        out.write(json.dumps(asdict(reply)).encode())
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
