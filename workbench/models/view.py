"""A saved view of the queue: a name and a query string, of one person or of everybody."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from workbench.models.user import User


class SavedView(models.Model):
    """`query` is what stands behind the ? of its address, as `workbench.queries.views` writes it. Deleted ones stay."""

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="views")
    name = models.CharField(max_length=40)
    query = models.CharField(max_length=600)
    shared = models.BooleanField(default=False)
    saved_at = models.DateTimeField(db_default=Now())
    deleted_by = models.CharField(max_length=120, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["person", "name"],
                condition=models.Q(shared=False),
                name="view_named_once_by_a_person",
            ),
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(shared=True, deleted_at=None),
                name="view_named_once_for_all",
            ),
            models.CheckConstraint(name="view_has_a_name", condition=~models.Q(name="")),
            models.CheckConstraint(
                name="view_deleted_who_and_when",
                condition=models.Q(deleted_at=None, deleted_by="")
                | (models.Q(deleted_at__isnull=False) & ~models.Q(deleted_by="")),
            ),
        )

    def __str__(self) -> str:
        return self.name
