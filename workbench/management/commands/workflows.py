"""`manage.py workflows check|publish|import PATH...`: workflow definitions from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from tools import importer, lint
from tools.problems import FileProblems
from workbench.commands import publishing
from workbench.queries.people import COMMAND_LINE

CATALOG = Path("tools/catalog")


class Command(BaseCommand):
    """Lints against contract files, so that `check` needs no database; `publish` pins what is published."""

    help = "Check workflow definitions, publish them, or import chains. A published version never changes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["check", "publish", "import"])
        parser.add_argument("paths", nargs="+", type=Path, help="files or folders")
        parser.add_argument(
            "--contracts", type=Path, action="append", help="files or folders (default: tools/catalog)"
        )
        parser.add_argument(
            "--waive", action="append", default=[], metavar="CODE", help="publish in spite of this error"
        )
        parser.add_argument(
            "--reason", action="append", default=[], metavar="TEXT", help="why, one for each --waive"
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="where imported files are written")

    def handle(self, *args: Any, **options: Any) -> None:
        action = options["action"]
        if options["waive"] and action != "publish":
            raise CommandError("--waive belongs to publish.")
        if action == "import":
            self._import(options["paths"], options["out"])
            return
        contracts = publishing.contracts(options["contracts"] or [CATALOG])
        waivers = _waivers(options["waive"], options["reason"])
        read = publishing.definitions(options["paths"], contracts.found.values(), waivers=waivers)
        broken = [line for line in contracts.said if line.blocks]
        for line in (*broken, *read.said):
            self.stderr.write(line.text)
        if broken or not read.good:
            raise CommandError("Nothing was published." if action == "publish" else "Not in order.")
        if action == "check":
            self.stdout.write(f"{len(read.found)} workflows are in order.")
            return
        try:
            for done in publishing.publish_definitions(read, actor=COMMAND_LINE, waivers=waivers):
                self.stdout.write(done)
        except publishing.REFUSALS as error:
            raise CommandError(str(error)) from error

    def _import(self, paths: list[Path], out: Path | None) -> None:
        """Reads all chains before the first file is written."""
        if out is None:
            raise CommandError("import needs --out DIR.")
        imported = []
        for path in publishing.files(paths):
            try:
                imported.append(importer.import_chain(importer.read_chain(path)))
            except FileProblems as error:
                self.stderr.write(str(error))
        if len(imported) < len(list(publishing.files(paths))):
            raise CommandError("Nothing was imported.")
        for one in imported:
            for file in importer.write(one, out):
                self.stdout.write(str(file))
            for note in one.notes:
                self.stdout.write(f"  to be checked: {note}")


def _waivers(codes: list[str], reasons: list[str]) -> list[lint.Waiver]:
    if len(codes) != len(reasons):
        raise CommandError("Each --waive CODE needs a --reason TEXT, in the same order.")
    return [lint.Waiver(code=code, reason=reason) for code, reason in zip(codes, reasons, strict=True)]
