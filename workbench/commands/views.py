"""Saved views of the queue: the only writer of them. A view of everybody's is kept by leads."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from sagas import api
from sagas.facts import Actor
from workbench import policies
from workbench.commands import people
from workbench.errors import Refused
from workbench.models import SavedView, User
from workbench.policies import Permission
from workbench.queries.views import read_query

MOST = 12
"""How many views one person, or everybody together, may keep: tabs are there to be seen at a glance."""


def save_view(*, actor: Actor, person: User, name: str, query: str, shared: bool) -> SavedView:
    """Keep a query string under a name. Raises ValidationError (by field), and Refused where leads share."""
    if shared:
        _only_with_the_right(actor, person)
    row = SavedView(person=person, name=name.strip(), query=read_query(query).query, shared=shared)
    with api.transaction():
        people.hold(person)
        row.clean_fields(exclude={"person", "saved_at"})
        alike = SavedView.objects.filter(
            shared=shared, deleted_at=None, **({} if shared else {"person": person})
        )
        if alike.count() >= MOST:
            raise ValidationError(
                {"name": _("There are %(n)d views already. Delete one first.") % {"n": MOST}}
            )
        try:
            row.save(force_insert=True)
        except IntegrityError:
            raise ValidationError({"name": _("There is a view of this name already.")}) from None
        api.log(name="view.saved", actor=actor, after=_told(row))
    return row


def delete_view(*, actor: Actor, person: User, view_id: int) -> bool:
    """Take a view away: one's own, and for a lead one of everybody's. False when there is none. Raises Refused."""
    with api.transaction():
        row = SavedView.objects.select_for_update().filter(pk=view_id, deleted_at=None).first()
        if row is None or (not row.shared and row.person_id != person.pk):
            return False
        if row.shared:
            _only_with_the_right(actor, person)
        SavedView.objects.filter(pk=row.pk).update(deleted_at=Now(), deleted_by=actor.id)
        api.log(name="view.deleted", actor=actor, after=_told(row))
    return True


def _told(row: SavedView) -> dict[str, object]:
    return {"view": row.name, "query": row.query, "shared": row.shared}


def _only_with_the_right(actor: Actor, person: User) -> None:
    refusal = policies.why_not_permitted(
        actor=actor, roles=person.current_roles(), permission=Permission.SHARE_VIEWS
    )
    if refusal is not None:
        raise Refused(refusal)
