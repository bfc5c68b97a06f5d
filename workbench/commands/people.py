"""Persons and their roles: the only writer of accounts and assignments.

These commands have no handoff; each leaves an entry through `sagas.api.log` in its own transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.password_validation import validate_password
from django.db.models.functions import Now

from sagas import api
from sagas.facts import Actor
from workbench.models import Assignment, User
from workbench.policies import HOLDERS, Permission
from workbench.roles import Role


def add_person(
    *,
    actor: Actor,
    username: str,
    display_name: str,
    password: str,
    language: str = "en",
    time_zone: str = "UTC",
    check_password: bool = True,
) -> User:
    """Store a new person without any role. Raises ValidationError (bad name, weak password, name taken).

    `check_password=False` is for the demo's published passwords alone; production never loads those.
    """
    person = User(username=username, display_name=display_name, language=language, time_zone=time_zone)
    person.set_password(password)
    person.full_clean()
    if check_password:
        validate_password(password, person)
    with api.transaction():
        person.save(force_insert=True)
        api.log(name="person.added", actor=actor, after={"username": username, "display_name": display_name})
    return person


def give_roles(*, actor: Actor, person: User, roles: Iterable[Role], reason: str = "") -> frozenset[Role]:
    """Give `person` those of `roles` that they do not hold yet; returns the new ones."""
    with api.transaction():
        held = _locked_roles(person)
        new = frozenset(roles) - held
        for role in sorted(new):
            Assignment.objects.create(person=person, role=role, granted_by=actor.id)
            after = {"username": person.username, "role": str(role)}
            api.log(name="role.given", actor=actor, reason=reason, after=after)
    return new


def take_role(*, actor: Actor, person: User, role: Role, reason: str) -> bool:
    """End the grant of `role`; False when `person` does not hold it. It counts from the next command on.

    With the role of an approver go the signatures that were given in it and not used yet; with the last role that may
    decide goes what waits for a second person.
    """
    with api.transaction():
        _locked_roles(person)
        grant = person.assignments.filter(role=role, ended_at=None)
        if not grant.update(ended_at=Now(), ended_by=actor.id):
            return False
        after = {"username": person.username, "role": str(role)}
        api.log(name="role.taken", actor=actor, reason=reason, after=after)
        runs = _void(person, actor, reason) if role is Role.APPROVER else ()
        if not person.current_roles() & HOLDERS[Permission.SETTLE]:
            runs += api.void_proposals_of(person.username, actor=actor, reason=reason)
    _ring(runs)
    return True


def switch_off(*, actor: Actor, person: User, reason: str) -> bool:
    """Take an account out of use; False when it is already. Its unused signatures are void with it."""
    with api.transaction():
        _locked_roles(person)
        if not User.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            return False
        api.log(name="person.switched_off", actor=actor, reason=reason, after={"username": person.username})
        runs = _void(person, actor, reason)
        runs += api.void_proposals_of(person.username, actor=actor, reason=reason)
    _ring(runs)
    return True


def set_preferences(*, person: User, language: str, time_zone: str, single_keys: bool) -> None:
    """Store how a person wants to be shown things. Raises ValidationError."""
    person.language, person.time_zone, person.single_keys = language, time_zone, single_keys
    person.clean_fields(exclude={"username", "password", "display_name"})
    person.save(update_fields=["language", "time_zone", "single_keys"])


def _void(person: User, actor: Actor, reason: str) -> tuple[str, ...]:
    return api.void_permits_of(person.username, actor=actor, reason=reason)


def _ring(runs: Iterable[str]) -> None:
    for run_ref in runs:
        api.ring(run_ref)


def hold(person: User) -> None:
    """Lock the account until the transaction ends: a right that is being taken away is gone before somebody uses it,
    or is taken away after that and finds what it was used for. Before the lock of any run.
    """
    User.objects.select_for_update(no_key=True).get(pk=person.pk)


def _locked_roles(person: User) -> frozenset[Role]:
    # One grant or withdrawal at a time for each person.
    hold(person)
    return person.current_roles()
