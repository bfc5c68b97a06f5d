"""`migrate` as the owner of the database: the application role may not change the schema."""

from typing import Any

from django.core.management import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections


class Command(migrate.Command):
    """Django's command with `--database owner` as its default."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> str | None:
        if options["database"] not in connections:
            raise CommandError("Migrating takes the owner's address: set DATABASE_OWNER_URL.")
        return super().handle(*args, **options)
