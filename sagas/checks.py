"""Django system checks of the deployment: what has to hold outside the code before a process may work.

They ask the database and the broker, so they run only where they are asked for: `manage.py check --deploy`, the
start of a worker, of the sweep and of the relay. Every command registers them, so what they need is imported when
they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps.config import AppConfig
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError

TAG = "amends"
RELEASE = "amends_release"


@register(TAG, deploy=True)
def hard_limit_is_above_every_call(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Celery must never end a drain that only waits for a tool within the tool's own limit."""
    from sagas import health
    from sagas.executor import DRAIN_S

    try:
        longest = health.longest_tool_limit_s()
    except DatabaseError as error:
        return [_no_database("sagas.E001", error)]
    limit = health.hard_limit_s()
    if limit > DRAIN_S + longest:
        return []
    said = f"CELERY_TASK_TIME_LIMIT is {limit:g} s; a drain may take {DRAIN_S + longest:g} s."
    hint = "Raise it above the longest total_s of the published contracts and the length of a drain."
    return [Error(said, hint=hint, id="sagas.E001")]


@register(TAG, deploy=True)
def processes_do_not_work_as_the_owner(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Guards bind nobody who could drop them: the application role owns no table and is no superuser."""
    from sagas import health

    try:
        owner = health.owns_tables()
    except DatabaseError as error:
        return [_no_database("sagas.E002", error)]
    if not owner:
        return []
    hint = "Give the processes the address of the application role; only `migrate` takes DATABASE_OWNER_URL."
    return [Error("DATABASE_URL names a role that may change the schema.", hint=hint, id="sagas.E002")]


@register(TAG, deploy=True)
def broker_evicts_nothing(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A broker that evicts loses bells and published events without a word."""
    from sagas import health

    policy = health.broker_policy()
    if policy is None:
        # Work goes on without the broker, slower; its absence must not keep a worker from starting.
        return [Warning("The broker cannot be reached; its policy is not known.", id="sagas.W003")]
    if policy == health.EVICTS_NOTHING:
        return []
    hint = f"Set maxmemory-policy to {health.EVICTS_NOTHING}."
    return [Error(f"The broker's maxmemory-policy is {policy!r}.", hint=hint, id="sagas.E003")]


@register(RELEASE, deploy=True)
def live_runs_find_their_tools(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A release without a tool that live runs need is found before it starts, not when a compensation is due.

    Of a tag of its own: a process that is started all the same works on, and hands those runs to people.
    """
    from sagas import retirement

    try:
        missing = retirement.unknown_to_this_release()
    except DatabaseError as error:
        return [_no_database("sagas.E004", error)]
    return [
        Error(
            f"{why}. {len(needs)} live runs need it: {', '.join(need.run_ref for need in needs[:10])}"
            f"{' and more' if len(needs) > 10 else ''}.",
            hint="Keep the tool in this release until none does; `manage.py contracts needs` lists them.",
            id="sagas.E004",
        )
        for why, needs in missing.items()
    ]


def _no_database(code: str, error: DatabaseError) -> CheckMessage:
    return Warning(
        f"The database does not answer ({type(error).__name__}).",
        id=code.replace("E", "W"),
        hint="Look at DATABASE_URL.",
    )
