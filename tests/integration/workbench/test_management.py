"""What the command line does: files are checked line by line, published once, people and tokens are made."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, ProgrammingError, connection, transaction
from pytest_django import Settings

from sagas import api
from tests.integration.workbench.flows import ROOT
from workbench.commands import people
from workbench.labs import cast
from workbench.models import ApiToken, Assignment, User
from workbench.queries.tokens import bearer
from workbench.roles import Role

CATALOG = ROOT / "tools" / "catalog"
EXAMPLES = ROOT / "examples"
WORKFLOWS = sum(path.suffix in {".toml", ".json"} for path in EXAMPLES.iterdir())


def run(*arguments: str | Path) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command(*[str(argument) for argument in arguments], stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def refused(*arguments: str | Path) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError) as stopped:
        call_command(*[str(argument) for argument in arguments], stdout=out, stderr=err)
    return str(stopped.value), err.getvalue()


@pytest.mark.requirement("S0-26", "S0-81", "S1-5")
def test_the_shipped_files_are_in_order() -> None:
    assert "contracts are in order" in run("contracts", "check", CATALOG)[0]
    told = run("workflows", "check", EXAMPLES, "--contracts", CATALOG)[0]
    assert f"{WORKFLOWS} workflows are in order" in told


@pytest.mark.requirement("S1-24")
def test_a_broken_contract_is_named_line_by_line_and_not_published(tmp_path: Path, db_clean: None) -> None:
    folder = tmp_path / "catalog"
    shutil.copytree(CATALOG, folder)
    broken = folder / "send_notice.toml"
    text = broken.read_text().replace('level = "medium"', 'level = "huge"')
    broken.write_text(text.replace("version = 1", "version = 0"))
    line = text.splitlines().index('level = "huge"') + 1

    message, said = refused("contracts", "publish", folder)

    assert message == "Nothing was published."
    assert f"{broken}:{line}:" in said
    assert said.count(str(broken)) == 2
    with pytest.raises(api_not_found()):
        api.start_run(actor=cast.SYSTEM, definition="order_fulfilment", input={}, start_key="x")


def api_not_found() -> type[Exception]:
    from sagas.errors import NotFound

    return NotFound


def test_publishing_twice_changes_nothing_and_other_content_needs_a_new_version(
    tmp_path: Path, db_clean: None
) -> None:
    first = run("contracts", "publish", CATALOG)[0]
    second = run("contracts", "publish", CATALOG)[0]
    changed = tmp_path / "send_notice.toml"
    changed.write_text(
        (CATALOG / "send_notice.toml").read_text().replace('level = "medium"', 'level = "high"')
    )
    shutil.copy(CATALOG / "query_notice.toml", tmp_path)

    message, _ = refused("contracts", "publish", tmp_path)

    assert set(first.split()[-1:]) == {"published"}
    assert "unchanged" in second
    assert "published" not in second
    assert "raise its version" in message


def test_what_others_lean_on_is_published_first(db_clean: None) -> None:
    told = [line.split()[0] for line in run("contracts", "publish", CATALOG)[0].splitlines()]

    assert told.index("query_notice") < told.index("send_notice")
    assert told.index("cancel_shipment") < told.index("create_shipment")


def test_a_workflow_is_published_only_on_published_contracts(db_clean: None) -> None:
    message, _ = refused("workflows", "publish", EXAMPLES / "order_fulfilment.toml", "--contracts", CATALOG)
    run("contracts", "publish", CATALOG)
    done = run("workflows", "publish", EXAMPLES, "--contracts", CATALOG)[0]
    again = run("workflows", "publish", EXAMPLES, "--contracts", CATALOG)[0]

    assert "reserve_stock" in message
    assert done.count("published") == WORKFLOWS
    assert again.count("unchanged") == WORKFLOWS


@pytest.mark.requirement("S4-25")
def test_the_cast_is_loaded_once_and_never_in_production(db_clean: None, settings: Settings) -> None:
    run("people", "load-demo")
    run("people", "load-demo")
    held = {a.person.username: a.role for a in Assignment.objects.select_related("person")}
    assert held == {
        "maya": "operator",
        "jonas": "operator",
        "lin": "lead",
        "priya": "approver",
        "oskar": "auditor",
        "ada": "admin",
    }
    assert User.objects.get(username="maya").check_password("demo-maya")

    settings.AMENDS_ENV = "production"

    message, _ = refused("people", "load-demo")
    assert "production" in message


def test_a_token_is_printed_once_and_only_its_digest_is_kept(db_clean: None) -> None:
    cast.load()

    out, err = run("token", "create", "--owner", "maya", "--kind", "agent", "--name", "triage")

    secret = out.strip()
    token = ApiToken.objects.get()
    caller = bearer(secret)
    assert caller is not None
    assert caller.actor.id == "agent:maya/triage"
    assert secret not in {str(value) for value in vars(token).values()}
    assert token.ref in err
    assert secret not in err
    run("token", "revoke", token.ref)
    assert bearer(secret) is None
    assert "no person" in refused("token", "create", "--owner", "nobody")[0]
    assert "90 days" in refused("token", "create", "--owner", "maya", "--days", "91")[0]


def test_a_person_is_added_with_a_password_of_some_strength(
    db_clean: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEW_PASSWORD", "12345")
    weak, _ = refused("people", "add", "tess", "--name", "Tess Hale", "--password-env", "NEW_PASSWORD")
    monkeypatch.setenv("NEW_PASSWORD", "a quiet harbour at noon")
    run("people", "add", "tess", "--name", "Tess Hale", "--roles", "owner", "--password-env", "NEW_PASSWORD")
    run("people", "give", "tess", "auditor", "--reason", "She reads the trail")
    run("people", "take", "tess", "owner", "--reason", "Somebody else owns them")

    assert "password" in weak
    tess = User.objects.get(username="tess")
    assert tess.current_roles() == {Role.AUDITOR}
    (gone,) = tess.assignments.filter(role="owner")
    assert gone.ended_by == "command-line"
    assert gone.ended_at is not None
    assert "Tess Hale\tauditor" in run("people", "list")[0]


@pytest.mark.requirement("S4-28")
def test_history_of_people_is_not_the_applications_to_change(db_clean: None) -> None:
    cast.load()
    maya = User.objects.get(username="maya")

    def denied(statement: str) -> None:
        with (
            pytest.raises(ProgrammingError, match="permission denied"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)

    denied("UPDATE workbench_user SET username = 'somebody'")
    denied("DELETE FROM workbench_user")
    denied("UPDATE workbench_assignment SET granted_by = 'nobody'")
    denied("DELETE FROM workbench_assignment")
    denied("UPDATE workbench_apitoken SET scopes = '[]'")
    denied("TRUNCATE workbench_receipt")
    with pytest.raises(IntegrityError, match="assignment_ended_who_and_when"), transaction.atomic():
        maya.assignments.update(ended_by="ada")
    assert people.give_roles(actor=cast.SYSTEM, person=maya, roles=[Role.OPERATOR]) == frozenset()


def test_teams_are_checked_published_and_shown(tmp_path: Path, db_clean: None) -> None:
    teams = EXAMPLES / "teams"
    assert "3 teams are in order" in run("teams", "check", teams)[0]

    first, second = run("teams", "publish", teams)[0], run("teams", "publish", teams)[0]

    assert first.splitlines() == ["accounts: version 1", "fulfilment: version 1", "network: version 1"]
    assert second.splitlines() == ["accounts: unchanged", "fulfilment: unchanged", "network: unchanged"]
    shown = run("teams", "queues")[0].splitlines()
    assert [line.split(" ")[0] for line in shown] == ["accounts", "fulfilment", "network"]
    assert "calendar 1, Europe/London" in shown[0]
    assert "calendar 1, around the clock): 0 open" in shown[1]


def test_a_broken_team_is_named_line_by_line_and_nothing_is_stored(tmp_path: Path, db_clean: None) -> None:
    shutil.copytree(EXAMPLES / "teams", tmp_path / "teams")
    broken = tmp_path / "teams" / "accounts.toml"
    broken.write_text(broken.read_text().replace("Europe/London", "Europe/Nowhere").replace('"09:00', '"9'))
    shutil.copy(EXAMPLES / "teams" / "network.toml", tmp_path / "teams" / "twice.toml")

    message, said = refused("teams", "publish", tmp_path / "teams")

    assert message == "Nothing was published."
    assert f"{broken}:3:" in said
    assert said.count("is no time of day") == 5
    assert "the team network is declared in" in said
    assert run("teams", "queues")[0] == ""


def test_versions_go_out_of_use_on_the_command_line_and_come_back(db_clean: None) -> None:
    run("contracts", "publish", CATALOG)
    run("workflows", "publish", EXAMPLES / "order_fulfilment.toml")
    given = {"order": "O-1", "sku": "SKU-118", "qty": 1, "address": "Harbour Street 4"}
    started = api.start_run(actor=cast.SYSTEM, definition="order_fulfilment", input=given, start_key="x")

    message, said = refused("contracts", "retire", "send_notice", "1", "--reason", "old")
    assert "1 live runs need version 1 of send_notice" in message
    assert f"{started.run_ref} (running, order_fulfilment v1); open steps: send_notice" in said
    assert "need version 1 of send_notice" in run("contracts", "needs", "send_notice", "1")[0]
    assert "1 live runs need" in refused("workflows", "retire", "order_fulfilment", "1", "--reason", "old")[0]

    done = run("contracts", "retire", "send_notice", "1", "--reason", "unsafe", "--withdraw")[0]
    assert done.startswith("send_notice version 1: withdrawn")
    assert started.run_ref in done
    done = run("workflows", "retire", "order_fulfilment", "1", "--reason", "old", "--withdraw")[0]
    assert done.startswith("order_fulfilment version 1: retired")
    assert len(api.retirements()) == 2

    run("contracts", "reinstate", "send_notice", "1", "--reason", "safe again")
    run("workflows", "reinstate", "order_fulfilment", "1", "--reason", "needed again")
    assert api.retirements() == ()
    assert "No retired contract" in refused("contracts", "reinstate", "send_notice", "1", "--reason", "x")[0]
    assert "No published contract" in refused("contracts", "needs", "send_notice", "7")[0]


def test_events_that_are_parked_are_shown_and_sent_again(db_clean: None) -> None:
    assert run("outbox", "parked")[0] == ""
    assert "No parked event of run" in refused("outbox", "redeliver", "run_x", "--reason", "mended")[0]
