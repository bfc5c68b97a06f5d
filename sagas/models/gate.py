"""The rate gate of a tool: when it may be called again after it asked us to slow down."""

from django.db import models


class Gate(models.Model):
    """One tool's gate, handed out in short transactions of its own."""

    tool = models.TextField(unique=True)
    not_before = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.tool
