"""The house rules about Python: each takes a source and yields what breaks it. Reads trees, imports nothing of ours.

A rule names the files that may do what everybody else may not; the reason stands beside the name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator

from tests.house.source import Source

type Rule = Callable[[Source], Iterator[str]]

# What writes the engine's tables: the ledger; publishing, freezing and gates, which belong to no run; the outbox's own
# marks.
WRITERS = (
    "sagas/ledger/",
    "sagas/freezes.py",
    "sagas/gates.py",
    "sagas/published.py",
    "sagas/relay.py",
    "sagas/reconcile.py",
    "sagas/teams.py",
    "sagas/retirement.py",
)
# The same in SQL, with the one statement that inserts entries and the guards that migrations install.
# A jump of a drill's clock carries the leases of living workers with it, as time would have.
SQL_WRITERS = (*WRITERS, "sagas/entries.py", "sagas/guards.py", "workbench/labs/drills/hours.py")
# What may reach the workbench's own tables; its doors, queries and policies only read.
PEOPLE_WRITERS = ("workbench/commands/", "workbench/models/", "workbench/labs/")
# What speaks to somebody at a terminal before logging exists, or instead of it.
TERMINALS = ("workbench/labs/", "workbench/bootstrap.py")
BELL = "sagas/relay.py"
LIFE_OF_A_WORKER = frozenset(
    {"setup_logging", "worker_init", "worker_process_init", "worker_shutdown", "worker_shutting_down"}
)

_ORM_WRITES = frozenset(
    {
        "save",
        "create",
        "bulk_create",
        "bulk_update",
        "get_or_create",
        "update_or_create",
        "delete",
        "aupdate",
        "acreate",
    }
)
_SQL_WRITE = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(sagas_\w+)", re.IGNORECASE)


def only_the_ledger_writes(source: Source) -> Iterator[str]:
    """No state is assigned and no engine row written outside the ledger (law 3)."""
    if source.package == "sagas" and not source.name.startswith(WRITERS):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and _assigns_state(node):
                yield _at(node, "assigns a state")
            elif _method(node) in _ORM_WRITES | {"update"} and not _of_plain_values(node):
                yield _at(node, f"writes through .{_method(node)}()")
    if not source.name.startswith(SQL_WRITERS):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from (_at(node, f"writes {table}") for table in _SQL_WRITE.findall(node.value))


def doors_and_queries_only_read(source: Source) -> Iterator[str]:
    """What shows, asks or decides writes no row; commands do."""
    if source.package != "workbench" or source.name.startswith(PEOPLE_WRITERS):
        return
    for node in ast.walk(source.tree):
        if _method(node) in _ORM_WRITES and not _of_plain_values(node):
            yield _at(node, f"writes through .{_method(node)}()")


def doors_know_no_tables(source: Source) -> Iterator[str]:
    """Pages, REST and command line import no models, of either app (one command, several doors)."""
    doors = ("workbench/web/", "workbench/api/", "workbench/templatetags/", "workbench/management/")
    if source.name.startswith(doors):
        for node, module in _imports(source.tree):
            if re.match(r"(sagas|workbench)\.models\b", module):
                yield _at(node, f"imports {module}")


def no_signals(source: Source) -> Iterator[str]:
    """Nothing happens behind anybody's back: no receivers, none on our models.

    Celery tells about the life of its processes by signals only; those, and no others, may be heard.
    """
    for node, module in _imports(source.tree):
        ours = re.match(r"django\.dispatch\b|django\.(core|db\.models|db\.backends|test)\.signals\b", module)
        celerys = module.startswith("celery.signals") and module.rpartition(".")[2] not in LIFE_OF_A_WORKER
        if ours or celerys:
            yield _at(node, f"imports {module}")


def only_the_bell_sends_messages(source: Source) -> Iterator[str]:
    """One place publishes a Celery message, and it carries nothing."""
    if source.name != BELL:
        for node in ast.walk(source.tree):
            if _method(node) in {
                "delay",
                "apply_async",
                "send_task",
                "delay_on_commit",
                "apply_async_on_commit",
            }:
                yield _at(node, f"calls .{_method(node)}()")


def celery_neither_waits_nor_retries(source: Source) -> Iterator[str]:
    """Due times and retries are rows: no ETA, no countdown, no retry policy in the broker (law 1)."""
    waits = {
        "eta",
        "countdown",
        "expires",
        "autoretry_for",
        "max_retries",
        "retry_backoff",
        "default_retry_delay",
    }
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not _about_tasks(source, node):
            continue
        for keyword in node.keywords:
            off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg in waits or (keyword.arg in {"retry", "acks_late", "retry_policy"} and not off):
                yield _at(node, f"gives Celery {keyword.arg}")


def tasks_are_bells(source: Source) -> Iterator[str]:
    """A task takes nothing and has a body of at most five lines: what is to be done is in the tables."""
    if source.name.endswith("/tasks.py"):
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and any(_is_task(part) for part in node.decorator_list):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if node.args.args or node.args.kwonlyargs or node.args.vararg or node.args.kwarg:
                    yield _at(node, f"{node.name} takes arguments")
                if body and (body[-1].end_lineno or 0) - body[0].lineno >= 5:
                    yield _at(node, f"{node.name} is longer than five lines")


def no_on_commit(source: Source) -> Iterator[str]:
    """What must happen after a commit is a row of the outbox; a hook in memory is lost with its process."""
    for node in ast.walk(source.tree):
        if (isinstance(node, ast.Attribute) and node.attr == "on_commit") or (
            isinstance(node, ast.Name) and node.id == "on_commit"
        ):
            yield _at(node, "uses on_commit")


def nothing_prints(source: Source) -> Iterator[str]:
    """Processes log events; only what speaks to somebody at a terminal prints."""
    if not source.name.startswith(TERMINALS):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield _at(node, "prints")


def modules_say_what_they_own(source: Source) -> Iterator[str]:
    """A module opens with what it owns and what it must not do."""
    if source.tree.body and not ast.get_docstring(source.tree):
        yield "1: the module has no docstring"


def public_names_are_described(source: Source) -> Iterator[str]:
    """A public function or class says in one sentence what it is."""
    for node in source.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not node.name.startswith("_") and not ast.get_docstring(node):
            yield _at(node, f"{node.name} has no docstring")


def modules_are_nouns_of_the_product(source: Source) -> Iterator[str]:
    """A module that could be called anything owns nothing."""
    vague = {
        "utils",
        "util",
        "helpers",
        "helper",
        "services",
        "service",
        "common",
        "misc",
        "managers",
        "core",
    }
    parts = source.name.removesuffix(".py").split("/")
    # The simulated world does have services: what a shop or a bank offers to its callers.
    if not source.name.startswith("tools/simulator/"):
        yield from (f"1: {part} says nothing about what it owns" for part in parts if part in vague)


def the_simulated_world_stands_alone(source: Source) -> Iterator[str]:
    """What the product is judged by shares nothing with it: the standard library and its own modules."""
    if source.name.startswith("tools/simulator/"):
        for node, module in _imports(source.tree):
            top = module.partition(".")[0]
            if top not in sys.stdlib_module_names and not module.startswith("tools.simulator"):
                yield _at(node, f"imports {module}")


PRODUCT_RULES: tuple[Rule, ...] = (
    only_the_ledger_writes,
    doors_and_queries_only_read,
    doors_know_no_tables,
    no_signals,
    only_the_bell_sends_messages,
    celery_neither_waits_nor_retries,
    tasks_are_bells,
    no_on_commit,
    nothing_prints,
    modules_say_what_they_own,
    public_names_are_described,
    modules_are_nouns_of_the_product,
    the_simulated_world_stands_alone,
)


def _at(node: ast.AST, what: str) -> str:
    return f"{getattr(node, 'lineno', 0)}: {what}"


def _method(node: ast.AST) -> str:
    """The name of a method that is called here, else nothing."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _assigns_state(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Attribute) and target.attr == "state" for target in targets)


def _of_plain_values(node: ast.AST) -> bool:
    """Whether the method is called on what is certainly no row: a name of the module's own plain values."""
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr == "update":
        # `names.update({...})` and `digest.update(b"")` pass one value; a queryset's update only names columns.
        return bool(node.args)
    return False


def _is_task(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(called, "attr", getattr(called, "id", "")) in {"task", "shared_task"}


def _about_tasks(source: Source, node: ast.Call) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    sends = called in {"delay", "apply_async", "send_task", "shared_task", "task", "signature", "s", "si"}
    return sends or source.name.endswith("/tasks.py")


def _imports(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Every imported module by its dotted name, names out of packages included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
