"""The two things templates may do to a value: make it inert, and draw an icon."""

from __future__ import annotations

import uuid

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workbench.web.presenters import text

register = template.Library()


@register.filter
def inert(value: object, longest: int = text.LONGEST) -> SafeString:
    """Untrusted text, escaped, with invisible characters made visible and cut when long."""
    return text.inert(value, longest)


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """A shape without a tone; hidden from assistive technology, so a word must stand beside it."""
    return format_html('<i class="i i-{} {}" aria-hidden="true"></i>', name, extra)


@register.simple_tag
def mark(name: str, extra: str = "") -> SafeString:
    """A state mark: shape and tone; a word or an accessible name must stand beside it."""
    return format_html('<i class="i i-{0} m-{0} {1}" aria-hidden="true"></i>', name, extra)


@register.simple_tag
def command_id() -> str:
    """A fresh id for one form: the second arrival of the same id changes nothing."""
    return uuid.uuid4().hex
