"""Cases that wait for a signature: an order whose shipment is only called off with one."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from sagas import api
from sagas.facts import RunFacts, SignoffFacts
from sagas.states import RunState
from tests.integration.workbench import flows
from tests.integration.workbench.flows import REASON, Desk
from tools.contract import Contract
from tools.definition import Definition
from tools.reader import contract_from_document, definition_from_document, read_contract, read_definition
from workbench.commands import Result, dispatch, people
from workbench.labs import cast
from workbench.models import User
from workbench.roles import Role

ROOT = Path(__file__).resolve().parents[3]
BY_ITSELF, BY_PEOPLE = "orders_signed", "orders_signed_by_people"


@cache
def _shipment() -> Contract:
    document = copy.deepcopy(read_contract(ROOT / "tools" / "catalog" / "create_shipment.toml").document)
    document["version"] = 90
    document["compensation"]["who"] = "approval"
    return contract_from_document(document)


@cache
def _workflow(name: str) -> Definition:
    document = copy.deepcopy(read_definition(ROOT / "examples" / "order_fulfilment.toml").document)
    document |= {"name": name, "recovery_deadline_s": 0.1}
    for step in document["steps"]:
        if step["id"] == "create_shipment":
            step["contract_version"] = 90
        if step["id"] == "send_notice":
            step["on_rejected"] = "handoff" if name == BY_PEOPLE else "compensate"
    return definition_from_document(document)


def publish() -> None:
    """One workflow that turns back by itself when the notice is refused, one that asks a person first."""
    api.publish_contract(_shipment(), actor=cast.SYSTEM)
    for name in (BY_ITSELF, BY_PEOPLE):
        api.publish_definition(_workflow(name), actor=cast.SYSTEM)


def drive_until_still(run_ref: str) -> RunFacts:
    """Drive what is due until the run is final, with a person, or waits for a signature."""
    return flows.drive_until_still(run_ref, also_at=(RunState.AWAITING_APPROVAL,))


def asked_by_itself(**given: Any) -> SignoffFacts:
    """The notice was refused, the run turned back and asks for a signature."""
    return _request(drive_until_still(flows.start(BY_ITSELF, **given)))


def asked_by(username: str, *, worked: str = "", code: str = "", **given: Any) -> SignoffFacts:
    """The notice was refused, and a person ordered the compensation; `worked` had the case before and gave it back."""
    facts = drive_until_still(flows.start(BY_PEOPLE, **given))
    assert facts.handoff is not None
    for verb in ("claim", "release") if worked else ():
        assert Desk(worked).run(verb, facts.handoff.ref, f"{verb}-{facts.ref}").accepted
    why = {"reason": REASON, "reason_code": code}
    done = Desk(username).run("compensate", facts.handoff.ref, f"order-{facts.ref}", **why)
    assert done.accepted, done
    return _request(drive_until_still(facts.ref))


def _request(facts: RunFacts) -> SignoffFacts:
    made_up = facts.action("create_shipment").compensation
    assert made_up is not None
    assert made_up.permit is not None, facts.state
    return api.signoff_facts(made_up.permit.ref)


def grant(username: str, *roles: Role) -> User:
    """Give somebody of the cast more roles."""
    person = flows.person(username)
    people.give_roles(actor=cast.SYSTEM, person=person, roles=roles)
    return person


def newcomer(username: str, *roles: Role) -> User:
    """Somebody who is not of the cast."""
    person = people.add_person(
        actor=cast.SYSTEM,
        username=username,
        display_name=username.title(),
        password=f"Long-{username}-word",
    )
    people.give_roles(actor=cast.SYSTEM, person=person, roles=roles)
    return person


def decide(username: str, verb: str, signoff: SignoffFacts, command_id: str = "d-1", **more: Any) -> Result:
    """Sign or reject as a page would: with the digest that was shown."""
    desk = Desk(username)
    saw = more.pop("saw_version", signoff.run.version)
    code = {"reason_code": "wrong_time"} if verb == "reject" else {}
    arguments = {"digest": signoff.permit.digest, "reason": REASON, **code, **more}
    return dispatch(
        actor=desk.actor,
        person=desk.person,
        verb=verb,
        signoff_ref=signoff.permit.ref,
        command_id=command_id,
        saw_version=saw,
        arguments={name: value for name, value in arguments.items() if value is not None},
        door="test",
    )
