"""`manage.py drill run PATH... [--json]`, `manage.py drill check PATH...`: scenarios from files, see docs/drills.md."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench.labs.drills import running


class Command(BaseCommand):
    """Exit code 0 when every drill passed, or every file is sound."""

    help = "Play drill files against the real engine, or only check them."
    requires_system_checks: list[str] = []  # its database does not run yet

    def add_arguments(self, parser: CommandParser) -> None:
        """What to do, and with which files."""
        parser.add_argument("what", choices=["run", "check"])
        parser.add_argument("paths", nargs="+", metavar="PATH", help="a drill file, or a folder of them")
        parser.add_argument("--but", metavar="FILE", help="a list of files to leave out, one name a line")
        parser.add_argument("--trail", action="store_true", help="what happened in those that fail")
        parser.add_argument("--json", action="store_true", help="the verdicts as JSON on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, then play."""
        try:
            paths = running.files(options["paths"])
            left_out = running.names_in(options["but"]) if options["but"] else frozenset()
        except OSError as error:
            raise CommandError(f"There is no such file: {error.filename or error}") from None
        paths = [path for path in paths if path.name not in left_out]
        drills, problems = running.read(paths)
        for problem in problems:
            self.stdout.write(problem)
        if problems:
            raise CommandError(
                f"{len(problems)} problems in {len(paths) - len(drills)} of {len(paths)} files."
            )
        if options["what"] == "check":
            self.stdout.write(f"{len(drills)} drills are sound.")
            return
        verdicts = running.run(drills, self._say, trail=options["trail"])
        self.stdout.write(running.summary(verdicts))
        if options["json"]:
            self.stdout.write(json.dumps([verdict.as_json() for verdict in verdicts], ensure_ascii=False))
        if not all(verdict.passed for verdict in verdicts):
            raise CommandError("Not every drill passed.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
