"""The small drawings that repeat on every row: strip, five counts, risk, owner. Drawn once for equal values.

A thousand cases show a few dozen different strips, so remembering them is what makes a long queue quick.
"""

from __future__ import annotations

import uuid
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from workbench.web.presenters import text
from workbench.web.presenters.marks import Count, Owner, Risk, Strip

REMEMBERED = 1024


def icon(name: str, extra: str = "") -> SafeString:
    """A shape without a tone; hidden from assistive technology, so a word must stand beside it."""
    return format_html('<i class="i i-{} {}" aria-hidden="true"></i>', name, extra)


def mark(name: str, extra: str = "") -> SafeString:
    """A state mark: shape and tone; a word or an accessible name must stand beside it."""
    return format_html('<i class="i i-{0} m-{0} {1}" aria-hidden="true"></i>', name, extra)


@lru_cache(maxsize=REMEMBERED)
def strip(shown: Strip) -> SafeString:
    """The strip, or from nine steps the bar; every mark says its state in words."""
    if shown.bar:
        parts = format_html_join(
            "",
            '<rect class="{}" x="{}" width="{}" height="14"{}/>',
            (
                (
                    part.tone,
                    part.x,
                    part.width,
                    mark_safe(' fill="url(#hatch)"') if part.tone == "bad" else "",
                )
                for part in shown.bar
            ),
        )
        return format_html(
            '<svg class="bar" viewBox="0 0 120 14" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
            shown.says,
            parts,
        )
    marks = format_html_join(
        "",
        '<li class="{}" title="{}">{}<span class="vh">{}</span></li>',
        ((one.bar, one.says, mark(one.icon), one.says) for one in shown.marks),
    )
    return format_html('<ol class="strip" aria-label="{}">{}</ol>', shown.says, marks)


@lru_cache(maxsize=REMEMBERED)
def counts(shown: tuple[Count, ...]) -> SafeString:
    """Five cells of a row; zero is a dot that is read as zero."""
    nothing = mark_safe('<span aria-hidden="true">·</span><span class="vh">0</span>')
    return format_html_join(
        "",
        '<td class="cnt {}{}" data-l="{}">{}</td>',
        ((one.tone, " cs" if one.first else "", one.name, one.value or nothing) for one in shown),
    )


@lru_cache(maxsize=64)
def risk(shown: Risk, *, long: bool = False) -> SafeString:
    """Four bars and a word."""
    return format_html(
        '<span class="risk r{}"><i aria-hidden="true"><b></b><b></b><b></b><b></b></i>{}</span>',
        shown.level,
        shown.long if long else shown.word,
    )


def owner(shown: Owner) -> SafeString:
    """Who holds a case, or the button that claims it: its ticket is the version seen and an id of its own."""
    face = format_html(
        '<span class="av{}" aria-hidden="true">{}</span>', " o" if shown.nobody else "", shown.initials
    )
    if not shown.nobody:
        return format_html('<span class="own">{} {}</span>', face, text.inert(shown.name, 40))
    if not shown.claim_url:
        return format_html('<span class="own">{} <span class="t2">{}</span></span>', face, shown.name)
    return format_html(
        '<span class="own">{face} <span class="t2">{name}<button class="lnk" id="c-{ref}" form="claims" '
        'formaction="{url}" name="ticket" value="{version}.{id}" hx-post="{url}" hx-target="closest div" '
        'hx-swap="innerHTML" hx-sync="this:drop" hx-disabled-elt="this">{claim}<span class="vh"> {ref}</span></button>'
        "</span></span>",
        face=face,
        name=shown.name,
        ref=shown.ref,
        url=shown.claim_url,
        version=shown.version,
        id=uuid.uuid4().hex,
        claim=_("Claim"),
    )
