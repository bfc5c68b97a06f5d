"""How a subcommand of `manage.py chaos` introduces itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandParser

type Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Door:
    """`run` says what it does line by line, the verdict last, and returns whether that holds."""

    help: str
    arguments: Callable[[CommandParser], None]
    run: Callable[[dict[str, Any], Say], bool]
