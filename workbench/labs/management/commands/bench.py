"""`manage.py bench WHAT`: figures of the product at work. What there is: `workbench.labs.bench`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench.labs import bench
from workbench.labs.chaos.door import Door


def doors() -> dict[str, Door]:
    """Every subcommand by its name, which is that of its module."""
    names = sorted(found.name for found in iter_modules(bench.__path__))
    modules = {name: import_module(f"{bench.__name__}.{name}") for name in names}
    return {name.replace("_", "-"): m.DOOR for name, m in modules.items() if hasattr(m, "DOOR")}


class Command(BaseCommand):
    """Exit code 0 when the figures are within their limits."""

    help = "Measure the product at work and compare the figures with their limits."
    requires_system_checks: list[str] = []  # its database does not run yet

    def add_arguments(self, parser: CommandParser) -> None:
        """A subcommand for each thing that is measured."""
        found = parser.add_subparsers(dest="what", required=True)
        for name, door in doors().items():
            door.arguments(found.add_parser(name, help=door.help))

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure it and tell."""
        if not doors()[options["what"]].run(options, self._say):
            raise CommandError("The figures are not within their limits.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
