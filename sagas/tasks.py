"""Celery tasks: bells. They carry nothing; what is to be done is in the tables."""

import mmap
import os
from typing import Any

from celery import shared_task
from celery.signals import worker_shutdown, worker_shutting_down
from django.db import DatabaseError, connection

from sagas.executor import drain_due
from sagas.ledger import ears
from sagas.relay import BELL

# A byte that a worker and the children it forks share. Plain memory: a child that is killed can leave no lock behind.
_told_to_stop = mmap.mmap(-1, 1)


@worker_shutting_down.connect
def tell_the_children(**signal: Any) -> None:
    """SIGTERM reaches the worker's first process only; its children end their drains when they see the byte."""
    _told_to_stop[0] = 1


@worker_shutdown.connect
def expect_nothing_of_me(**signal: Any) -> None:
    """A worker that ends in good order is not taken for a deaf one. Without a database it is, for a while."""
    try:
        ears.left(ears.place_of(os.getpid()))
    except DatabaseError:
        connection.close()


def stopping() -> bool:
    """Whether this worker is being shut down."""
    return _told_to_stop[0] == 1


@shared_task(name=BELL, ignore_result=True)
def drain() -> None:
    """Drain what is due; many bells rung at once wake one drain."""
    drain_due(stopping=stopping)
