"""`manage.py workflows check|publish PATH...`: workflow definitions from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from workbench.commands import publishing
from workbench.queries.people import COMMAND_LINE

CATALOG = Path("tools/catalog")


class Command(BaseCommand):
    """Lints against contract files, so that `check` needs no database; `publish` pins what is published."""

    help = "Check workflow definitions, or publish them. A published version never changes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["check", "publish"])
        parser.add_argument("paths", nargs="+", type=Path, help="files or folders")
        parser.add_argument(
            "--contracts", type=Path, action="append", help="files or folders (default: tools/catalog)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        contracts = publishing.contracts(options["contracts"] or [CATALOG])
        read = publishing.definitions(options["paths"], contracts.found.values())
        broken = [line for line in contracts.said if line.blocks]
        for line in (*broken, *read.said):
            self.stderr.write(line.text)
        if broken or not read.good:
            raise CommandError(
                "Nothing was published." if options["action"] == "publish" else "Not in order."
            )
        if options["action"] == "check":
            self.stdout.write(f"{len(read.found)} workflows are in order.")
            return
        try:
            for done in publishing.publish_definitions(read, actor=COMMAND_LINE):
                self.stdout.write(done)
        except publishing.REFUSALS as error:
            raise CommandError(str(error)) from error
