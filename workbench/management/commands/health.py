"""`manage.py health [NAME...]`: the checks of /readyz on the command line, for supervisors and containers."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench.queries import health


class Command(BaseCommand):
    """Exit code 0 when every check named (all without a name) holds."""

    help = "Say whether this installation is fit to work, check by check."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(health.CHECKS)}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each check. Raises CommandError when one does not hold."""
        names = options["names"] or list(health.CHECKS)
        if unknown := sorted(set(names) - set(health.CHECKS)):
            raise CommandError(f"There is no check {unknown[0]}; there are {', '.join(health.CHECKS)}.")
        failed = 0
        for name, check in health.look(names).items():
            measured = "".join(f" {what}={value}" for what, value in check.measured.items())
            self.stdout.write(f"{'ok ' if check.ok else 'NOT'} {name}{measured} {check.detail}".rstrip())
            failed += not check.ok
        if failed:
            raise CommandError(f"{failed} of {len(names)} checks do not hold.")
