"""Starts the world: ports, store, announcement. Ends on a signal or, with --with-parent, with its parent."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import stat
import sys
import threading
import time
from pathlib import Path

from tools.simulator.admin import Admin, admin_handler
from tools.simulator.server import EVERYTHING, HOST, Gateway, JsonHandler, Listener
from tools.simulator.store import Store
from tools.simulator.wire import Json
from tools.simulator.world import World

PARENT_EVERY_S = 0.5


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulator", description="The world outside, simulated."
    )
    parser.add_argument("--port", type=int, default=0, help="tool port; 0 = any free one")
    parser.add_argument("--admin-port", type=int, default=0, help="admin port; 0 = any free one")
    parser.add_argument("--store", type=Path, required=True, help="folder of the store; made when missing")
    parser.add_argument(
        "--announce", type=Path, help="file that gets the addresses as JSON once all is ready"
    )
    parser.add_argument("--in-memory", action="store_true", help="keep nothing beyond the end (labs)")
    parser.add_argument("--fast", action="store_true", help="do not wait for the disk (tests)")
    parser.add_argument(
        "--with-parent", action="store_true", help="end when the parent process or stdin ends"
    )
    return parser.parse_args(given)


def end_with_parent() -> None:
    """End this process when its parent does, or when a piped standard input closes."""
    parent = os.getppid()

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_EVERY_S)
        os._exit(0)

    def watch_stdin() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch_parent, daemon=True).start()
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        threading.Thread(target=watch_stdin, daemon=True).start()


def announce(path: Path, gateway: Gateway, admin_port: int, secret: str) -> None:
    """Say where everything is, and what callbacks are signed with."""
    systems = {name: port for name, port in gateway.ports.items() if name != EVERYTHING}
    addresses: Json = {
        "tool_url": f"http://{HOST}:{gateway.ports[EVERYTHING]}",
        "admin_url": f"http://{HOST}:{admin_port}",
        "pid": os.getpid(),
        "callback_secret": secret,
        "systems": {system: f"http://{HOST}:{port}/{system}" for system, port in systems.items()},
    }
    write_whole(path, addresses)


def write_whole(path: Path, value: Json) -> None:
    """Write JSON in one move, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def earlier_ports(path: Path) -> dict[str, int]:
    """The ports of the last start on this store; empty on the first one."""
    try:
        return {str(name): int(port) for name, port in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def callback_secret(path: Path) -> str:
    """What callbacks are signed with: of the environment, else made once and kept beside the store."""
    if given := os.environ.get("SIMULATOR_CALLBACK_SECRET"):
        return given
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    return path.read_text()


def open_admin(port: int, before: int, handler: type[JsonHandler]) -> Listener:
    """The admin port: the one asked for, else the one of the last start if it is free, else any."""
    try:
        listener = Listener(port or before, handler)
    except OSError:
        if port or not before:
            raise
        listener = Listener(0, handler)
    listener.start()
    return listener


def main(given: list[str] | None = None) -> int:
    """Run until told to stop."""
    options = arguments(given)
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    if options.with_parent:
        end_with_parent()
    try:
        store = Store(options.store, fast=options.fast, in_memory=options.in_memory)
    except BlockingIOError:
        sys.stderr.write(f"another simulator holds {options.store}\n")
        return 1
    secret = callback_secret(options.store / "callback_secret")
    world = World(store, callback_secret=secret)
    ports = options.store / "ports.json"
    before = earlier_ports(ports)
    gateway = Gateway(world, port=options.port, before=before)
    admin = open_admin(options.admin_port, before.get("admin", 0), admin_handler(Admin(world, gateway)))
    write_whole(ports, {**gateway.ports, "admin": admin.server_address[1]})
    if options.announce:
        announce(options.announce, gateway, admin.server_address[1], secret)
    stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
