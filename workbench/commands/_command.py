"""What a command is: a name, a permission, its arguments, its own refusal and what it runs.

A command holds no transaction and no lock: `_dispatch` opens both around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sagas import api
from sagas.facts import Actor, Looked, RunFacts, SignoffFacts
from workbench.commands._arguments import Arguments
from workbench.errors import Refusal
from workbench.policies import Permission


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the reads of a command are about."""

    verb: str
    step: str = ""
    reference: str = ""


class Command[A: Arguments](ABC):
    """One verb on a handoff. The class is never instantiated; the registry holds it by its verb.

    What permission it takes is `policies.permission_of`.
    """

    verb: ClassVar[str]
    label: ClassVar[Any]
    """The button's text; `%(tool)s` is the tool of the offered step."""
    label_alone: ClassVar[Any] = None
    """The button's text where no step is offered; only needed where `label` names the tool."""
    reach: ClassVar[str] = "record_only"
    """read_only, writes or record_only; the preview of an allowed offer says it exactly."""
    key: ClassVar[str] = ""
    """The letter that picks it on the page; no key runs anything."""
    arguments: ClassVar[type[Arguments]] = Arguments
    needs_preview: ClassVar[bool] = False
    """With a preview goes the version check: what was shown must still be so."""
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    """Arguments that the preview is made for, beside the step: running it takes the very same ones."""
    anytime: ClassVar[bool] = False
    """Also on a run that nobody is asked about."""
    claims: ClassVar[bool] = False
    """The first action claims an unclaimed case and renews a claim of one's own."""
    schedules: ClassVar[bool] = False
    """Accepted means queued, not done: what comes of it shows on the page later."""
    looks: ClassVar[bool] = False
    """Reads the outside world before its transaction (`sagas.api.look`)."""
    looks_for_preview: ClassVar[bool] = False
    """The preview makes the same reads, to show what they find."""
    holds_right: ClassVar[bool] = False
    """The account is locked until the transaction ends: a right that is being taken away is gone, or not yet."""

    @classmethod
    def offered(cls, facts: RunFacts) -> bool:
        """Whether a page shows it at all, allowed or not."""
        return True

    @classmethod
    def target(cls, facts: RunFacts, arguments: Arguments | None) -> Target:
        """What is read for it before its transaction."""
        step, reference = getattr(arguments, "step", ""), getattr(arguments, "reference", "")
        return Target(verb=cls.verb, step=step, reference=reference)

    @classmethod
    def refusal(
        cls, *, facts: RunFacts, roles: frozenset[Any], arguments: A, looked: Looked | None
    ) -> Refusal | None:
        """What speaks against these arguments, beyond `policies.why_not`; `looked` is what was just read."""
        return None

    @classmethod
    def refusal_of_shape(
        cls, *, facts: RunFacts, roles: frozenset[Any], given: Mapping[str, Any]
    ) -> Refusal | None:
        """What speaks against a preview for these arguments, of those that shape it."""
        return None

    @classmethod
    @abstractmethod
    def run(cls, desk: api.Desk, *, arguments: A, looked: Looked | None) -> None:
        """Do it, under the desk's locks. Raises sagas.errors.NotAllowed."""


class SignoffCommand[A: Arguments](ABC):
    """One verb on a request for a signature."""

    verb: ClassVar[str]
    label: ClassVar[Any]
    said: ClassVar[Any]
    """What is answered when it has taken effect; `%(at)s` is the time."""
    key: ClassVar[str] = ""
    """The letter that picks it on the page; no key runs anything."""
    permission: ClassVar[Permission] = Permission.SIGN
    arguments: ClassVar[type[Arguments]] = Arguments
    schedules: ClassVar[bool] = False
    """Accepted means queued, not done: what comes of it shows on the page later."""
    confirms: ClassVar[bool] = False
    """Only for somebody who has shown lately who they are."""

    @classmethod
    def refusal(cls, *, signoff: SignoffFacts, arguments: A) -> Refusal | None:
        """What speaks against these arguments, beyond `policies.why_not_signoff`."""
        return None

    @classmethod
    @abstractmethod
    def run(cls, desk: api.Desk, *, ref: str) -> None:
        """Do it, under the desk's locks. Raises sagas.errors.NotAllowed."""


class SystemCommand[A: Arguments](ABC):
    """One verb on the whole system, without a handoff."""

    verb: ClassVar[str]
    label: ClassVar[Any]
    permission: ClassVar[Permission]
    arguments: ClassVar[type[Arguments]] = Arguments

    @classmethod
    def refusal(cls, *, actor: Actor, arguments: A) -> Refusal | None:
        """What speaks against these arguments, beyond the permission."""
        return None

    @classmethod
    @abstractmethod
    def run(cls, *, actor: Actor, arguments: A, command_id: str) -> None:
        """Do it, inside the dispatcher's transaction."""
