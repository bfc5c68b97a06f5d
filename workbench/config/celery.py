"""The Celery application: rings the bell and runs what it rings for.

Its settings are the CELERY_* names of workbench.config.settings.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.config.settings")

app = Celery("amends")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["sagas"])
