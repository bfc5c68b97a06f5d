"""Every way to misbehave does what its name says, to the call it was planned for and to no other."""

import http.client
import time
from datetime import datetime, timedelta

import pytest

from tests.unit.simulator.conftest import Outside
from tests.unit.simulator.wire import Heard, ask, wait_until

NOTICE = {"order": "O-1", "text": "On its way"}


def send(outside: Outside, key: str = "k-1", **more: float) -> Heard:
    return outside.call("notify", "POST", "/messages", NOTICE, key=key, **more)


def sent(outside: Outside) -> int:
    return outside.effects("O-1").get("send_notice", {"net": 0})["net"]


@pytest.mark.parametrize(
    ("mode", "status", "effects"),
    [
        ("refuse", 422, 0),
        ("fail_before", 500, 0),
        ("fail_after", 500, 1),
        ("garbage", 200, 1),
        ("wrong_schema", 200, 1),
        ("throttle", 429, 0),
        ("slow", 201, 1),
        ("query_down", 503, 0),
        ("query_absent", 404, 0),
        ("not_found", 404, 0),
        ("redirect", 302, 0),
        ("huge_body", 200, 1),
        ("ok", 201, 1),
    ],
)
@pytest.mark.requirement("S2-21")
def test_a_mode_gives_its_status_and_its_effect(
    outside: Outside, mode: str, status: int, effects: int
) -> None:
    outside.plan({"tool": "send_notice", "mode": mode, "attempts": [1]})
    assert send(outside).status == status
    assert sent(outside) == effects
    assert send(outside).status == 201


@pytest.mark.parametrize(("mode", "effects"), [("no_answer", 0), ("applied_no_answer", 1)])
@pytest.mark.requirement("S3-6")
def test_a_call_without_an_answer_hangs_past_the_limit(outside: Outside, mode: str, effects: int) -> None:
    outside.plan({"tool": "send_notice", "mode": mode})
    with pytest.raises(TimeoutError):
        send(outside, limit_s=0.3)
    assert wait_until(
        lambda: outside.records(kind="replied")
    )  # it may have given up before that was worked out
    assert sent(outside) == effects
    assert outside.records(kind="replied")[0]["status"] is None


def test_a_late_answer_comes_after_the_effect(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "late", "delay_ms": 400})
    begun = time.monotonic()
    assert send(outside).status == 201
    assert time.monotonic() - begun >= 0.4
    assert sent(outside) == 1


@pytest.mark.requirement("S3-6")
def test_a_late_effect_lands_after_the_caller_has_given_up(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "late_effect", "delay_ms": 400})
    with pytest.raises(TimeoutError):
        send(outside, limit_s=0.1)
    assert wait_until(lambda: sent(outside) == 1)
    effect, arrived = outside.records(kind="effect")[0], outside.records(kind="arrived")[0]
    assert effect["detail"]["late"] is True
    assert effect["call"] == arrived["seq"]
    waited = datetime.fromisoformat(effect["at"]) - datetime.fromisoformat(arrived["at"])
    assert waited >= timedelta(milliseconds=400)


def test_a_late_effect_of_an_honoured_key_lands_once(outside: Outside) -> None:
    body = {"order": "O-9", "sku": "SKU-118", "qty": 1}
    outside.plan({"tool": "reserve_stock", "mode": "late_effect", "delay_ms": 300, "attempts": [1]})
    with pytest.raises(TimeoutError):
        outside.call("stock", "POST", "/reservations", body, key="k", limit_s=0.1)
    assert wait_until(lambda: outside.records(kind="arrived"))  # else the second would be the first
    assert outside.call("stock", "POST", "/reservations", body, key="k").status == 201
    time.sleep(0.5)
    assert outside.effects("O-9")["reserve_stock"]["done"] == 1


def test_a_cut_answer_is_incomplete(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "cut"})
    with pytest.raises(http.client.IncompleteRead):
        send(outside)
    assert sent(outside) == 1


def test_a_reset_connection_gives_nothing(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "reset"})
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        send(outside)
    assert sent(outside) == 0


def test_a_dripping_answer_never_ends_within_the_limit(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "drip", "delay_ms": 900})
    begun = time.monotonic()
    with pytest.raises((OSError, http.client.HTTPException)):
        send(outside, limit_s=3)
    assert time.monotonic() - begun >= 0.8
    assert sent(outside) == 1


def test_garbage_is_no_json_and_a_huge_body_is_huge(outside: Outside) -> None:
    outside.plan(
        {"tool": "send_notice", "mode": "garbage", "match": "k-1"},
        {"tool": "send_notice", "mode": "huge_body", "match": "k-2", "bytes": 3_000_000},
    )
    assert b"<html>" in send(outside).raw
    assert len(send(outside, key="k-2").raw) > 2_900_000


def test_a_throttle_says_when_to_come_back(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "throttle", "retry_after_s": 7})
    assert send(outside).headers["retry-after"] == "7"


@pytest.mark.requirement("S4-5")
def test_not_found_after_the_effect_can_be_planned(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "not_found", "applied": True})
    assert send(outside).status == 404
    assert sent(outside) == 1


def test_a_refusal_says_what_it_was_told_to(outside: Outside) -> None:
    rule = {"tool": "send_notice", "mode": "refuse", "status": 403, "body": {"error": "blocked"}}
    outside.plan(rule)
    answer = send(outside)
    assert (answer.status, answer.json) == (403, {"error": "blocked"})


def test_keys_can_be_ignored_by_a_tool_that_honours_them(outside: Outside) -> None:
    body = {"order": "O-3", "sku": "SKU-118", "qty": 1}
    outside.plan({"tool": "reserve_stock", "mode": "ignore_key"})
    for _ in range(2):
        outside.call("stock", "POST", "/reservations", body, key="k")
    assert outside.effects("O-3")["reserve_stock"]["done"] == 2


def test_queries_can_be_down_or_blind_while_the_write_works(outside: Outside) -> None:
    send(outside)
    outside.plan({"tool": "query_notice", "mode": "query_absent", "times": 1})
    assert outside.call("notify", "GET", "/messages?key=k-1").status == 404
    outside.plan({"tool": "query_notice", "mode": "query_down", "times": 1})
    assert outside.call("notify", "GET", "/messages?key=k-1").status == 503
    assert outside.call("notify", "GET", "/messages?key=k-1").status == 200


def test_tries_are_counted_for_each_key_from_when_the_rule_was_planned(outside: Outside) -> None:
    send(outside)
    outside.plan({"tool": "send_notice", "mode": "fail_before", "attempts": [1, 3]})
    assert [send(outside).status for _ in range(4)] == [500, 201, 500, 201]
    assert send(outside, key="k-2").status == 500


def test_tries_can_be_counted_over_all_keys(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "fail_before", "attempts": [2], "per": "rule"})
    assert [send(outside, key=f"k-{n}").status for n in range(3)] == [201, 500, 201]


def test_a_rule_picks_by_content_and_a_later_plan_goes_first(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "match": "O-2", "mode": "fail_before"})
    assert send(outside).status == 201
    outside.plan({"tool": "*", "match": "O-1", "mode": "refuse"})
    assert send(outside).status == 422
    outside.plan({"tool": "send_notice", "mode": "ok"})
    assert send(outside).status == 201


def test_rules_can_be_seen_and_dropped(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "refuse"}, {"tool": "send_sms", "mode": "refuse"})
    send(outside)
    rules = outside.admin("GET", "/plan")["rules"]
    assert [(rule["tool"], rule["used"]) for rule in rules] == [("send_notice", 1), ("send_sms", 0)]
    outside.admin("DELETE", f"/plan/{rules[0]['id']}")
    assert send(outside).status == 201
    assert outside.admin("DELETE", "/plan") == {"dropped": 1}


def test_a_share_of_calls_fails_the_same_way_every_time(outside: Outside) -> None:
    def failures() -> list[int]:
        outside.admin("POST", "/reset")
        outside.plan({"tool": "send_notice", "mode": "fail_before", "share": 0.4, "seed": 7})
        return [send(outside, key=f"key-{n}").status for n in range(40)]

    first = failures()
    assert first == failures()
    assert 5 < first.count(500) < 30


@pytest.mark.parametrize(
    "rule",
    [
        {"tool": "send_notice", "mode": "explode"},
        {"tool": "send_notice", "mode": "ok", "attempts": [0]},
        {"tool": "send_notice", "mode": "ok", "often": 1},
        "send_notice",
    ],
)
def test_a_rule_that_cannot_be_understood_is_refused_with_its_number(outside: Outside, rule: object) -> None:
    good = {"tool": "send_notice", "mode": "refuse"}
    answer = ask(outside.admin_url, "POST", "/plan", {"rules": [good, rule]})
    assert answer.status == 422
    assert "rule 1:" in answer.json["message"]
    assert send(outside).status == 201


def test_a_system_that_is_down_refuses_connections_and_comes_back_at_its_address(outside: Outside) -> None:
    outside.admin("POST", "/down", {"system": "notify"})
    with pytest.raises(ConnectionRefusedError):
        send(outside)
    assert not outside.records()
    assert outside.call("stock", "GET", "/reservations?key=k").status == 404
    outside.admin("POST", "/up", {"system": "notify"})
    assert send(outside).status == 201


def test_taking_a_system_down_cuts_open_connections(outside: Outside) -> None:
    outside.plan({"tool": "send_notice", "mode": "no_answer"})
    host, port = outside.systems["notify"].removeprefix("http://").split("/")[0].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", "/notify/messages", '{"order": "O-1"}')
    assert wait_until(lambda: bool(outside.records(kind="replied")))
    outside.admin("POST", "/down", {"system": "notify"})
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
    outside.admin("POST", "/up", {"system": "notify"})
