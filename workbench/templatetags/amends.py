"""What templates may do to a value: make it inert, or draw it."""

from __future__ import annotations

import uuid

from django import template
from django.utils.safestring import SafeString

from workbench.web import draw
from workbench.web.presenters import text

register = template.Library()


@register.filter
def inert(value: object, longest: int = text.LONGEST) -> SafeString:
    """Untrusted text, escaped, with invisible characters made visible and cut when long."""
    return text.inert(value, longest)


@register.filter
def plain(value: object, longest: int = text.LONGEST) -> str:
    """Untrusted text without any markup of ours, for where none may stand: the title of a page."""
    return text.plain(value, longest)


register.simple_tag(draw.icon)
register.simple_tag(draw.mark)
register.simple_tag(draw.strip)
register.simple_tag(draw.counts)
register.simple_tag(draw.risk)
register.simple_tag(draw.owner)


@register.simple_tag
def command_id() -> str:
    """A fresh id for one form: the second arrival of the same id changes nothing."""
    return uuid.uuid4().hex
