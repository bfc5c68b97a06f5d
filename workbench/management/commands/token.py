"""`manage.py token create|revoke`: tokens of agents and integrations. The secret is printed once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError, CommandParser

from workbench.commands import tokens
from workbench.queries.people import COMMAND_LINE, person_named
from workbench.roles import Scope, TokenKind


class Command(BaseCommand):
    """Standard output holds the secret and nothing else, so that it can be piped."""

    help = "Create an API token that a person answers for, or revoke one."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create")
        create.add_argument("--owner", required=True, help="user name of the person who answers for it")
        create.add_argument("--kind", choices=[str(kind) for kind in TokenKind], default=str(TokenKind.AGENT))
        create.add_argument("--name", default="agent", help="what it is called in the trail")
        create.add_argument(
            "--scopes",
            nargs="+",
            choices=[str(scope) for scope in Scope],
            default=[str(scope) for scope in Scope],
        )
        create.add_argument("--days", type=int, default=90, help="1 to 90")
        revoke = actions.add_parser("revoke")
        revoke.add_argument("ref", help="the token's reference, tk_...")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "revoke":
            if not tokens.revoke(actor=COMMAND_LINE, ref=options["ref"]):
                raise CommandError("There is no such token in use.")
            self.stderr.write(f"{options['ref']} is revoked.")
            return
        owner = person_named(options["owner"])
        if owner is None or not owner.is_active:
            raise CommandError(f"There is no person {options['owner']!r}.")
        try:
            issued = tokens.issue(
                actor=COMMAND_LINE,
                owner=owner,
                kind=TokenKind(options["kind"]),
                name=options["name"],
                scopes=[Scope(scope) for scope in options["scopes"]],
                life=timedelta(days=options["days"]),
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.stderr.write(f"{issued.ref}, until {issued.expires_at:%Y-%m-%d}. It is shown this once:")
        self.stdout.write(issued.secret)
