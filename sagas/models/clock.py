"""The one clock that leases, expiries and due times are read from: the database's function `now_()`.

It is clock_timestamp(), so that it is right after a wait for a lock; test databases add an offset to it.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class DatabaseNow(models.Func):
    """`now_()` as an expression and as a column default."""

    function = "now_"
    template = "%(function)s()"
    output_field: ClassVar[models.Field[object, object]] = models.DateTimeField()
