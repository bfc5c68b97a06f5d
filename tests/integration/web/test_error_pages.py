"""Error pages: what is told of a form that this session did not hand out."""

from __future__ import annotations

import pytest
from django.test import Client

from sagas.facts import RunFacts
from tests.conftest import Simulator
from tests.integration.workbench import flows
from tests.integration.workbench.conftest import ref_of

WORDS = {
    "maya": ("This form is too old", "Nothing was sent. Open the page again and repeat it."),
    "lin": ("此表单已过期", "未发送任何内容。请重新打开页面后再试。"),
}


@pytest.mark.requirement("S1-20")
@pytest.mark.parametrize("who", WORDS)
@pytest.mark.parametrize("htmx", [True, False])
def test_b27_an_old_form_is_told_in_the_readers_language_and_takes_no_part_of_the_page(
    workplace: Simulator, who: str, htmx: bool
) -> None:
    client = Client(enforce_csrf_checks=True)
    someone = flows.person(who)
    someone.language = "zh-hans" if who == "lin" else "en"
    someone.save(update_fields=["language"])
    client.force_login(someone)
    headers = {"HX-Request": "true", "HX-Target": "case-body"} if htmx else {}

    answer = client.post("/account/", {"csrfmiddlewaretoken": "x" * 64}, headers=headers)

    assert answer.status_code == 403
    told = answer.content.decode()
    assert all(words in told for words in WORDS[who])
    assert ("<html" in told) is not htmx
    if htmx:
        assert (answer.headers["HX-Retarget"], answer.headers["HX-Reswap"]) == ("#main", "afterbegin")
    else:
        assert someone.display_name in told


def test_an_old_form_of_the_login_page_is_told_to_somebody_who_is_not_logged_in(workplace: Simulator) -> None:
    answer = Client(enforce_csrf_checks=True).post("/login/", {"username": "maya", "password": "x"})

    assert answer.status_code == 403
    assert WORDS["maya"][0] in answer.content.decode()


@pytest.mark.requirement("S4-1")
@pytest.mark.parametrize("htmx", [True, False])
def test_what_somebody_wrote_is_inert_on_an_error_page_too(rejected_notice: RunFacts, htmx: bool) -> None:
    wrote = "Provider \u202edetaerc\u202c \x1b[2J<b>duplicates</b>\u200b, wait for the others to look at it."
    frozen = flows.Desk("ada").run("freeze", "", "f-1", scope="writes", applies_to="all", reason=wrote)
    assert frozen.accepted, frozen
    client = Client()
    client.force_login(flows.person("maya"))
    headers = {"HX-Request": "true"} if htmx else {}

    answer = client.post(f"/handoffs/{ref_of(rejected_notice)}/plan/", headers=headers)

    assert answer.status_code == 423
    told = answer.content.decode()
    shown = told[told.index("Provider ") :].partition("look at it")[0]
    assert [name in shown for name in (">U+202E<", ">U+202C<", ">U+200B<", ">ESC<")] == [True] * 4
    assert "&lt;b&gt;" in shown
    assert not {"\u202e", "\u202c", "\u200b", "\x1b"} & set(shown)
