"""`manage.py outbox parked`, `manage.py outbox redeliver RUN --reason TEXT`: events that could not be published."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser

from sagas import api
from sagas.errors import NotFound
from workbench.queries.people import COMMAND_LINE


class Command(BaseCommand):
    """Shows what is parked and lets it go out again, in order, once its cause is gone."""

    help = "List the events that could not be published, or let those of a run go out again."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("parked")
        redeliver = actions.add_parser("redeliver")
        redeliver.add_argument("run", help="a run's reference, as `parked` shows it")
        redeliver.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "parked":
            for one in api.parked():
                self.stdout.write(
                    f"{one.run_ref}:{one.seq_from}-{one.seq_to} since {one.since:%Y-%m-%d %H:%M} UTC, "
                    f"{one.waiting} commits wait behind it: {one.problem}"
                )
            return
        try:
            count = api.redeliver(options["run"], actor=COMMAND_LINE, reason=options["reason"])
        except NotFound as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} commits of {options['run']} go out again")
