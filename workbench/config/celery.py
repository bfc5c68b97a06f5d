"""The Celery application: rings the bell and runs what it rings for.

Its settings are the CELERY_* names of workbench.config.settings.
"""

import logging.config
import os
import sys
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.config.settings")

app = Celery("amends")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["sagas"])


@setup_logging.connect
def log_like_everybody_else(**given: Any) -> None:
    """Celery's own lines go the way of all others; without this it would set up a log of its own."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def refuse_to_work_on_an_unfit_installation(**given: Any) -> None:
    """In production a worker starts only where the checks of the deployment hold."""
    from django.conf import settings
    from django.core.checks import ERROR, run_checks

    if settings.AMENDS_ENV != "production":
        return
    errors = [
        found for found in run_checks(tags=["amends"], include_deployment_checks=True) if found.level >= ERROR
    ]
    if errors:
        # Celery logs an exception of a handler and goes on; only an exit stops it.
        sys.exit("\n".join(str(found) for found in errors))
