"""Error pages: what is told of a form that this session did not hand out."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.conftest import Simulator
from tests.integration.workbench import flows

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
