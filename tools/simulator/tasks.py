"""Repair tasks: work for a person, opened about a case and closed when it is done.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from tools.simulator.route import Route, back, do, read
from tools.simulator.shelf import changed, either, found, made, need
from tools.simulator.store import Tables
from tools.simulator.wire import Answer, Call


def create_task(tables: Tables, call: Call) -> Answer:
    """Open a task about a case; a second call with another key opens a second one."""
    about, kind, title = call.text("about"), call.text("kind", r"[a-z_-]{1,40}"), call.text("title")
    body = {"task": tables.next_id("TK-"), "about": about, "kind": kind, "title": title, "state": "open"}
    return made(tables, call, kind="task", business=about, parent=f"{kind}/{about}", body=body)


def close_task(tables: Tables, call: Call) -> Answer:
    """Close an open task; 409 when it is closed already. The task itself stays."""
    thing = need(tables.get("task", call.params["task"]), "task")
    return changed(tables, thing, "closed", of="open")


def get_task(tables: Tables, call: Call) -> Answer:
    """A task by its number, by the key that opened it, or the open one of a kind about a case."""
    kind, about = call.query.get("kind", ""), call.query.get("about", "")
    if kind and about:
        return found(tables.by_parent("task", f"{kind}/{about}", "open"), "task")
    return found(either(tables, call, "task", "task"), "task")


ROUTES: tuple[Route, ...] = (
    do("create_task", "tasks", "open", "POST /tasks", create_task, honours_key=True),
    back("close_task", "tasks", "close", "POST /tasks/{task}/closing", close_task, of="create_task"),
    read("get_task", "tasks", "/tasks", get_task),
)
