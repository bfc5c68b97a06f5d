"""`manage.py teams check|publish PATH...`, `manage.py teams queues`: calendars, chains, and what waits for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from sagas import api
from sagas.facts import TeamQueue
from workbench.commands import teams
from workbench.queries.people import COMMAND_LINE


class Command(BaseCommand):
    """Says everything that is wrong with the files, each on its line; stores only when nothing is."""

    help = "Check or publish the calendars of teams, or show what waits for each team."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for verb in ("check", "publish"):
            actions.add_parser(verb).add_argument("paths", nargs="+", type=Path, help="files or folders")
        actions.add_parser("queues")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "queues":
            for queue in api.team_queues():
                self.stdout.write(_line(queue))
            return
        try:
            read = teams.read(options["paths"])
        except OSError as error:
            raise CommandError(str(error)) from error
        for line in read.wrong:
            self.stderr.write(line)
        if read.wrong:
            raise CommandError("Not in order." if options["action"] == "check" else "Nothing was published.")
        if options["action"] == "check":
            self.stdout.write(f"{len(read.found)} teams are in order.")
            return
        for done in teams.publish(read, actor=COMMAND_LINE):
            self.stdout.write(done)


def _line(queue: TeamQueue) -> str:
    hours = "around the clock" if not queue.zone else f"{queue.zone}, {_work(queue)}"
    declared = f"calendar {queue.calendar}" if queue.calendar else "not declared"
    waits = f"{queue.cases} open, {queue.unclaimed} unclaimed, {queue.late} late, {queue.escalated} escalated"
    first = f", first due {queue.first_due_at:%Y-%m-%d %H:%M} UTC" if queue.first_due_at else ""
    alarm = "  NOBODY ATTENDS" if queue.unattended else ""
    return f"{queue.team or '(no team)'} ({declared}, {hours}): {waits}{first}{alarm}"


def _work(queue: TeamQueue) -> str:
    return "at work" if queue.opens_at is None else f"opens {queue.opens_at:%Y-%m-%d %H:%M} UTC"
