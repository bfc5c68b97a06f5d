"""Settings, addresses and entry points of the processes. Nothing below `labs` may import it."""

# Tasks bind to this application as soon as Django is set up, in the web process too.
from workbench.config.celery import app as celery_app

__all__ = ["celery_app"]
