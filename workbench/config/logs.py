"""The log: one event a line, JSON where machines read it, secrets masked whatever the line is about.

Knows neither Django nor Celery, so that gunicorn can log the same way before the application is loaded.
"""

from __future__ import annotations

from typing import Any, cast

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from tools.contract import Json
from tools.redact import mask


def without_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Mask what looks like a secret in every part of an event, the traceback included."""
    return cast("EventDict", mask(_plain(event)))


def _plain(value: Any) -> Json:
    """A value as JSON can hold it; what it cannot hold is told in words, which can be masked."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(part) for part in value]
        case _:
            return str(value)


def configuration(*, as_json: bool) -> dict[str, Any]:
    """What `logging.config.dictConfig` takes; structlog's events go the same way."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Local variables hold arguments and results of calls: they are never part of a traceback here.
    structured = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
    rendered: list[Processor] = (
        [structured, without_secrets, structlog.processors.JSONRenderer(ensure_ascii=False)]
        if as_json
        else [
            structlog.processors.format_exc_info,
            without_secrets,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )
    if not structlog.is_configured():
        # Once: loggers keep the list of processors that they met first, and tests put theirs into that very list.
        structlog.configure(
            processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=True,
        )
    own_way: dict[str, Any] = {"handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "events": {
                "()": "structlog.stdlib.ProcessorFormatter",
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        # Django and gunicorn bring handlers of their own (mail, console); all lines go one way here.
        "loggers": {
            "django": own_way,
            "gunicorn.error": own_way,
            # Requests are said by workbench.config.requests, with their number and without what was searched for.
            "gunicorn.access": {**own_way, "level": "WARNING"},
            # Whoever runs a demo or a test sees its requests anyway.
            "workbench.config.requests": {"level": "INFO" if as_json else "WARNING"},
            "httpx2": {"level": "WARNING"},
        },
    }
