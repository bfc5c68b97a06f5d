"""`manage.py chaos WHAT`: faults on purpose, judged by the simulated world. What there is: `workbench.labs.chaos`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench.labs import chaos, strays
from workbench.labs.chaos.door import Door


def doors() -> dict[str, Door]:
    """Every subcommand by its name, which is that of its module."""
    names = sorted(found.name for found in iter_modules(chaos.__path__))
    modules = {name: import_module(f"{chaos.__name__}.{name}") for name in names}
    return {name: module.DOOR for name, module in modules.items() if hasattr(module, "DOOR")}


class Command(BaseCommand):
    """Exit code 0 when the verdict holds."""

    help = "Break the product on purpose and have the outside judge."
    requires_system_checks: list[str] = []  # its database does not run yet

    def add_arguments(self, parser: CommandParser) -> None:
        found = parser.add_subparsers(dest="what", required=True)
        for name, door in doors().items():
            door.arguments(found.add_parser(name, help=door.help))

    def handle(self, *args: Any, **options: Any) -> None:
        with strays.ending_on_sigterm():
            holds = doors()[options["what"]].run(options, self._say)
        if not holds:
            raise CommandError("It does not hold.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
