"""Celery tasks: bells. They carry nothing; what is to be done is in the tables."""

from celery import shared_task

from sagas.executor import drain_due
from sagas.relay import BELL


@shared_task(name=BELL, ignore_result=True)
def drain() -> None:
    """Drain what is due; many bells rung at once wake one drain."""
    drain_due()
