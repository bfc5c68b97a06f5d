"""`manage.py relay`: publishes the outbox as a process of its own, until SIGTERM."""

import signal
import time
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections, connection
from redis.exceptions import RedisError

from sagas.relay import broker, relay_once, to_stream

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    """Publishes entries as events, at least once and in order within a run."""

    help = "Publish the outbox to the event stream, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        """Relay until told to stop. An outage of either side is waited out; nothing is parked for it."""
        if settings.AMENDS_ENV == "production":
            self.check(tags=["amends"], include_deployment_checks=True)
        told: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            # No lock: the handler may come while the main thread holds one.
            signal.signal(number, lambda number, frame: told.append(number))
        publish, pause = to_stream(broker()), 0.0
        while not told:
            time.sleep(pause)
            try:
                close_old_connections()
                pause = 0.0 if relay_once(publish) else 0.2
            except (RedisError, DatabaseError) as error:
                log.warning("relay.outage", problem=type(error).__name__)
                connection.close()
                pause = 1.0
