"""`manage.py reconcile`: one pass now, with progress and a verdict line; the sweep makes one every hour."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sagas.reconcile import reconcile
from tools.world import World


class Command(BaseCommand):
    """Compares the record with the systems outside."""

    help = "Compare every run that changed since the last pass with what the systems say."

    def handle(self, *args: Any, **options: Any) -> None:
        """Make one pass. Exits with an error when something drifted."""
        world = World(settings.TOOL_SYSTEMS)
        try:
            found = reconcile(world, progress=self.stdout.write)
        finally:
            world.close()
        if found is None:
            raise CommandError("Another reconciliation is running.")
        self.stdout.write(
            f"looked {found.looked} confirmed {found.confirmed} drift {found.drift} "
            f"could not check {found.unread}"
        )
        if found.drift:
            raise CommandError(f"{found.drift} effects are not as recorded; each is with a person now.")
