"""The bell is a hint: a broker that does not answer costs whoever rings a moment, and nothing else."""

from __future__ import annotations

import socket

import pytest
from celery import Celery

from sagas import relay

LONGEST_S = 2.0
"""What a ring may cost a request (FI-3)."""


def test_a_broker_that_takes_connections_and_never_answers_holds_a_ring_for_two_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Celery("mute", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    limit_s = app.conf.broker_transport_options["socket_timeout"]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        impatient = {**app.conf.broker_transport_options, "socket_timeout": 0.05}
        app.conf.update(
            broker_url=f"redis://127.0.0.1:{mute.getsockname()[1]}/0", broker_transport_options=impatient
        )
        monkeypatch.setattr(relay, "current_app", app)

        assert not relay.ring("run_1")

        tried = _waiting(mute)
    app.close()
    # How often it waits for an answer times how long: counted, so that a busy machine changes nothing.
    assert tried >= 1
    assert tried * limit_s <= LONGEST_S
    assert app.conf.broker_transport_options["socket_connect_timeout"] <= LONGEST_S


def _waiting(listening: socket.socket) -> int:
    """How many connections were made to somebody who has not looked at any of them."""
    listening.setblocking(False)
    count = 0
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1
