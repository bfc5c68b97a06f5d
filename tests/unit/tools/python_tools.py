"""Tools that the tests of the Python adapter call, well-behaved and otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tools.adapters.python import ToolAnswer, tool
from tools.contract import Json


@tool
def book(args: Any, key: str) -> Json:
    sys.stdout.write("noise that must not spoil the reply\n")
    args["room"] = "changed"
    return {"booking": "B-1", "key": key}


@tool
def refuse(args: Any, key: str) -> Json:
    raise ToolAnswer(422, {"code": "no_such_room"})


@tool
def fail(args: Any, key: str) -> Json:
    raise RuntimeError("password=hunter2hunter2")


@tool
def leave(args: Any, key: str) -> Json:
    raise SystemExit(3)


@tool
def vanish(args: Any, key: str) -> Json:
    os._exit(3)


@tool
def hang(args: Any, key: str) -> Json:
    started = subprocess.Popen(["sleep", "60"])
    Path(args["night"]).write_text(f"{os.getpid()} {started.pid}")
    time.sleep(60)


@tool
def no_json(args: Any, key: str) -> Json:
    return {"booking": {1, 2}}


@tool
def not_a_number(args: Any, key: str) -> Json:
    return {"booking": float("nan")}


@tool
def large(args: Any, key: str) -> Json:
    return {"booking": "x" * 3_000_000}


@tool
def environment(args: Any, key: str) -> Json:
    return {"booking": "B-1", "names": sorted(os.environ)}


def unmarked(args: Any, key: str) -> Json:
    return {"booking": "B-1"}
