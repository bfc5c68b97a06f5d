"""`manage.py sweep`: the sweep as a process of its own, until SIGTERM."""

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from sagas.sweep import Sweep


class Command(BaseCommand):
    """Finds what should move and does not."""

    help = "Find due work, dead workers and lapsed claims, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep until told to stop."""
        if settings.AMENDS_ENV == "production":
            self.check(tags=["amends"], include_deployment_checks=True)
        sweep = Sweep([import_string(name) for name in settings.AMENDS_ERRANDS])
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, sweep.stop)
        sweep.run()
