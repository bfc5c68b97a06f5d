"""`manage.py workflows check|publish|import PATH...`, `retire|reinstate NAME VERSION`: workflows and their versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from sagas import api
from sagas.errors import EngineError, StillNeeded
from tools import importer, lint
from tools.problems import FileProblems
from workbench.commands import publishing
from workbench.queries.people import COMMAND_LINE

CATALOG = Path("tools/catalog")


class Command(BaseCommand):
    """Lints against contract files, so that `check` needs no database; `publish` pins what is published."""

    help = (
        "Check, publish, import workflows, or take a version out of use. A published version never changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for verb in ("check", "publish", "import"):
            paths = actions.add_parser(verb)
            paths.add_argument("paths", nargs="+", type=Path, help="files or folders")
            paths.add_argument(
                "--contracts", type=Path, action="append", help="files or folders (default: tools/catalog)"
            )
            paths.add_argument(
                "--waive", action="append", default=[], metavar="CODE", help="publish in spite of this error"
            )
            paths.add_argument(
                "--reason", action="append", default=[], metavar="TEXT", help="why, one for each --waive"
            )
            paths.add_argument("--out", type=Path, metavar="DIR", help="where imported files are written")
        retire = actions.add_parser("retire", help="let no new run begin with a version")
        reinstate = actions.add_parser("reinstate", help="take a version back into use")
        for one in (retire, reinstate):
            one.add_argument("name")
            one.add_argument("version", type=int)
            one.add_argument("--reason", required=True)
        retire.add_argument(
            "--withdraw", action="store_true", help="although runs of it are live: they go on by it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        action = options["action"]
        if action in ("retire", "reinstate"):
            self._version(action, options)
            return
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

    def _version(self, action: str, options: dict[str, Any]) -> None:
        name, version, reason = options["name"], options["version"], options["reason"]
        try:
            if action == "reinstate":
                api.reinstate("workflow", name, version, actor=COMMAND_LINE, reason=reason)
                self.stdout.write(f"{name} version {version}: in use again")
                return
            needs = api.retire_workflow(
                name, version, actor=COMMAND_LINE, reason=reason, withdraw=options["withdraw"]
            )
        except StillNeeded as error:
            for line in publishing.needs_in_lines(error.needs):
                self.stderr.write(line)
            raise CommandError(f"{error} Nothing was changed. (--withdraw)") from error
        except EngineError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{name} version {version}: retired")
        for line in publishing.needs_in_lines(needs):
            self.stdout.write(line)

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
