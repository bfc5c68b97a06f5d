"""`manage.py contracts check|publish PATH...`, `needs|retire|reinstate TOOL VERSION`: contracts and their versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from sagas import api
from sagas.errors import EngineError, StillNeeded
from workbench.commands import publishing
from workbench.queries.people import COMMAND_LINE

CATALOG = Path("tools/catalog")


class Command(BaseCommand):
    """Says everything that is wrong, each on its line; publishes only when nothing is."""

    help = (
        "Check tool contracts, publish them, or take a version out of use. A published version never changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for verb in ("check", "publish"):
            paths = actions.add_parser(verb)
            paths.add_argument("paths", nargs="*", type=Path, default=[CATALOG], help="files or folders")
        needs = actions.add_parser("needs", help="the live runs that need a version")
        retire = actions.add_parser("retire", help="let nothing new use a version")
        reinstate = actions.add_parser("reinstate", help="take a version back into use")
        for one in (needs, retire, reinstate):
            one.add_argument("tool")
            one.add_argument("version", type=int)
        for one in (retire, reinstate):
            one.add_argument("--reason", required=True)
        retire.add_argument(
            "--withdraw",
            action="store_true",
            help="although live runs need it: no call goes out under it, and runs that come to it go to people",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        match options["action"]:
            case "check" | "publish":
                self._files(options["action"], options["paths"])
            case action:
                try:
                    self._version(action, options)
                except StillNeeded as error:
                    for line in publishing.needs_in_lines(error.needs):
                        self.stderr.write(line)
                    raise CommandError(f"{error} Nothing was changed. (--withdraw)") from error
                except EngineError as error:
                    raise CommandError(str(error)) from error

    def _version(self, action: str, options: dict[str, Any]) -> None:
        tool, version, reason = options["tool"], options["version"], options.get("reason", "")
        match action:
            case "needs":
                needs = api.needs_of_contract(tool, version)
                self.stdout.write(f"{len(needs)} live runs need version {version} of {tool}.")
            case "retire":
                needs = api.retire_contract(
                    tool, version, actor=COMMAND_LINE, reason=reason, withdraw=options["withdraw"]
                )
                done = "withdrawn" if options["withdraw"] else "retired"
                self.stdout.write(f"{tool} version {version}: {done}")
            case _:
                api.reinstate("contract", tool, version, actor=COMMAND_LINE, reason=reason)
                self.stdout.write(f"{tool} version {version}: in use again")
                return
        for line in publishing.needs_in_lines(needs):
            self.stdout.write(line)

    def _files(self, action: str, paths: list[Path]) -> None:
        read = publishing.contracts(paths)
        for line in read.said:
            self.stderr.write(line.text)
        if not read.good:
            raise CommandError("Nothing was published." if action == "publish" else "Not in order.")
        if action == "check":
            self.stdout.write(f"{len(read.found)} contracts are in order.")
            return
        try:
            for done in publishing.publish_contracts(read, actor=COMMAND_LINE):
                self.stdout.write(done)
        except publishing.REFUSALS as error:
            raise CommandError(str(error)) from error
