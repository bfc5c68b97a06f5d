"""`manage.py contracts check|publish PATH...`: tool contracts from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from workbench.commands import publishing
from workbench.queries.people import COMMAND_LINE

CATALOG = Path("tools/catalog")


class Command(BaseCommand):
    """Says everything that is wrong, each on its line; publishes only when nothing is."""

    help = "Check tool contracts, or publish them. A published version never changes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["check", "publish"])
        parser.add_argument("paths", nargs="*", type=Path, default=[CATALOG], help="files or folders")

    def handle(self, *args: Any, **options: Any) -> None:
        read = publishing.contracts(options["paths"])
        for line in read.said:
            self.stderr.write(line.text)
        if not read.good:
            raise CommandError(
                "Nothing was published." if options["action"] == "publish" else "Not in order."
            )
        if options["action"] == "check":
            self.stdout.write(f"{len(read.found)} contracts are in order.")
            return
        try:
            for done in publishing.publish_contracts(read, actor=COMMAND_LINE):
                self.stdout.write(done)
        except publishing.REFUSALS as error:
            raise CommandError(str(error)) from error
