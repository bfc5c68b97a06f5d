"""The page of a case without a browser: what a tool or an agent says is shown in refusals and titles, never obeyed."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from sagas.facts import Looked, RunFacts
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of

POISON = "<img src=x>\x1b[31m\u202e" + "é" * 3000


def test_words_of_a_tool_in_a_refusal_are_inert_and_cut(
    unknown_notice: RunFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Looked(verb="resolve_happened", step="send_notice", verified=False, detail=POISON)
    monkeypatch.setattr("sagas.looks._verify", lambda *_: said)
    monkeypatch.setattr("workbench.web.presenters.case.title", lambda _: "<b>Orders\x1b\u202e")
    ref, client = ref_of(unknown_notice), Client()
    client.force_login(flows.person("maya"))

    answer = client.post(
        f"/handoffs/{ref}/act/",
        {
            "verb": "resolve_happened",
            "step": "send_notice",
            "reference": "M-1",
            "reason": flows.REASON,
            "command_id": "r-1",
            "preview_id": flows.Desk("maya").preview(ref, "resolve_happened", "send_notice"),
        },
    )

    page = answer.content.decode()
    assert answer.status_code == 422
    said_twice = [
        re.search(rf"<{tag} [^>]*f-reference[^>]*>.*?does not confirm.*?</{tag}>", page, re.DOTALL)
        for tag in ("a", "p")
    ]
    for part in said_twice:
        assert part is not None
        assert '<span class="vis">ESC</span>' in part[0]
        assert '<span class="vis">U+202E</span>' in part[0]
        assert "more bytes</span>" in part[0]
    assert "<img src=x>" not in page
    assert not {"\x1b", "\u202e"} & set(page)
    assert re.search(rf"<title>\s*{ref} &lt;b&gt;Orders‹ESC›‹U\+202E›", page)
