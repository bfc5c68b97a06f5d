"""A person who logs in. Accounts are switched off, never deleted: the trail names them for good."""

from __future__ import annotations

from functools import cache
from typing import ClassVar
from zoneinfo import available_timezones

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from workbench.roles import Role


@cache
def _time_zones() -> frozenset[str]:
    """The names of the time zone database; finding them means reading its folder."""
    return frozenset(available_timezones())


def existing_time_zone(value: str) -> None:
    """Raises ValidationError unless `value` is a zone of the time zone database."""
    if value not in _time_zones():
        raise ValidationError(_("There is no time zone of this name."))


class People(BaseUserManager["User"]):
    """Finds people by user name; new ones come from `workbench.commands.people`."""


class User(AbstractBaseUser):
    """`username` is the person's identity in claims, receipts and the trail, and never changes."""

    username = models.CharField(
        max_length=40, unique=True, validators=[RegexValidator(r"\A[a-z][a-z0-9._-]*\Z")]
    )
    display_name = models.CharField(max_length=80)
    language = models.CharField(
        max_length=10, choices=[("en", "English"), ("zh-hans", "简体中文")], default="en"
    )
    time_zone = models.CharField(max_length=40, default="UTC", validators=[existing_time_zone])
    # WCAG 2.1.4: single-key shortcuts can be switched off.
    single_keys = models.BooleanField(default=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["display_name"]

    objects: ClassVar[People] = People()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="user_name_is_plain", condition=models.Q(username__regex=r"^[a-z][a-z0-9._-]*$")
            ),
        )

    def __str__(self) -> str:
        return self.display_name

    def current_roles(self) -> frozenset[Role]:
        """The roles held now, read from the database each time: a lost role counts at once (ASVS 8.3.2)."""
        # The account is asked again too: `self` may be as old as the page.
        held = self.assignments.filter(ended_at=None, person__is_active=True).values_list("role", flat=True)
        return frozenset(Role(role) for role in held)
