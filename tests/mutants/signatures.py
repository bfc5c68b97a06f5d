"""The scene of the signatures: of another person, over the very call, in time, once."""

from __future__ import annotations

import time

from sagas import api
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Run
from sagas.tx import durable
from tests.integration.sagas.stage import INPUTS
from tests.mutants.scene import REASON, Scene
from workbench.commands import dispatch
from workbench.labs import cast
from workbench.models import User
from workbench.queries.people import actor_of


def signed(scene: Scene) -> None:
    """Signatures: of another person, over the very call, in time, once."""
    numbers = {"changed": 7_000_171, "expired": 7_000_172, "twice": 7_000_173}
    refusal = {"tool": "reclaim_limit", "mode": "refuse", "attempts": [1]}
    refs = {
        name: scene.start(
            "bank_opening_signed",
            number,
            {"tool": "send_sms", "mode": "refuse"},
            *([refusal] if name == "twice" else []),
            given=INPUTS["bank_opening"](number),
        )
        for name, number in numbers.items()
    }
    scene.settle()
    requests = {row.run_ref: row.ref for row in api.signoffs().rows}
    if set(refs.values()) - set(requests):
        scene.must(so=False, otherwise="no signature was asked for")
        return
    _own(scene, requests[refs["changed"]])
    for ref in refs.values():
        scene.must(_sign(scene, requests[ref]) < 300, "a signature was refused")
    _change_what_was_signed(scene, refs["changed"])
    # Used, refused by the tool, and ordered again: that takes another signature.
    _drain_one(scene, refs["twice"])
    if scene.facts(refs["twice"]).handoff is not None:
        scene.command(cast.LIN, refs["twice"], "compensate")
    _drain_one(scene, refs["twice"])
    calls = scene.outside.ledger(tool="reclaim_limit", kind="arrived")
    own = [one for one in calls if refs["twice"] in one["key"]]
    scene.must(len(own) <= 1, "a signature that was used up was used again")
    _drain_one(scene, refs["changed"])
    scene.forward(3600)  # the last one is not used for an hour
    _drain_one(scene, refs["expired"])


def _drain_one(scene: Scene, ref: str) -> None:
    """Drive one run as far as it goes now, jumping over short waits."""
    for _ in range(6):
        claimed = scene.claim(ref, workers.enrol("one"))
        if claimed is not None:
            scene.drive(*claimed)
        due = Run.objects.values_list("due_at", flat=True).get(ref=ref)
        if due is None or (due - api.now()).total_seconds() > 60:
            return
        scene.at(due)


def _own(scene: Scene, permit: str) -> None:
    """Who shaped the request tries to sign it."""
    person = User.objects.get(username="priya")
    actor = actor_of(person)
    with api.transaction(), api.signoff_desk(permit, actor=actor, reason=REASON) as desk:
        rows = desk._desk.permits
        rows[-1].requesters = [*rows[-1].requesters, {"id": actor.id, "name": actor.name}]
        desk._desk.set(rows[-1], requesters=rows[-1].requesters)
    scene.must(_sign(scene, permit) >= 400, "who had asked for it could sign it")
    with api.transaction(), api.signoff_desk(permit, actor=actor, reason=REASON) as desk:
        rows = desk._desk.permits
        desk._desk.set(rows[-1], requesters=[one for one in rows[-1].requesters if one["id"] != actor.id])


def _sign(scene: Scene, permit: str) -> int:
    person = User.objects.get(username="priya")
    result = dispatch(
        actor=actor_of(person),
        person=person,
        verb="sign",
        signoff_ref=permit,
        command_id=f"sign-{permit}-{len(scene.said)}-{time.monotonic_ns()}",
        arguments={"digest": api.signoff_facts(permit).permit.digest, "reason": REASON},
        door="scene",
    )
    return result.http_status


def _change_what_was_signed(scene: Scene, ref: str) -> None:
    with durable(), opened(scene.run_id(ref)) as desk:
        for compensation in desk.compensations.values():
            if compensation.state == "due" and isinstance(compensation.args, dict):
                first = next(iter(compensation.args))
                desk.set(compensation, args={**compensation.args, first: "700999"})
        desk.due_at = desk.now
        desk.close(release=False)
