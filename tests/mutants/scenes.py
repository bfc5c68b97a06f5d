"""Short scenes on the real engine in this one process; the four histories are held against each other after each.

What a scene itself looks at goes into `wrong` beside what the invariants find. Without a bug every scene finds nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from sagas import api, faultpoints
from sagas.errors import ClaimLost, NotAllowed
from sagas.executor import perform
from sagas.facts import ActionFacts
from sagas.ledger import advance as ledger
from sagas.ledger import workers
from sagas.ledger.desk import opened
from sagas.models import Run
from sagas.orders import Answered, Call
from sagas.tx import durable
from tests.mutants.crowds import frozen, herd, relay, rivals
from tests.mutants.scene import AGENT, REASON, Scene
from tests.mutants.signatures import signed
from tools.contract import Json
from workbench.labs import cast
from workbench.models import User
from workbench.queries.people import actor_of


def trip(number: int) -> Json:
    return {
        "trip": f"TR-{number}",
        "car": f"CAR-{number}",
        "hotel": f"HOT-{number}",
        "flight": f"FL-{number}",
    }


# --- The scenes -------------------------------------------------------------------------------------------------


def turned_back(scene: Scene) -> None:
    """The last step is refused; what was done is made up for."""
    scene.start("trip_package", 7_000_001, {"tool": "book_flight", "mode": "refuse"}, given=trip(7_000_001))
    scene.start("order_fulfilment", 7_000_002, {"tool": "create_shipment", "mode": "refuse"})
    scene.start("bank_opening", 7_000_003)
    scene.settle()


def lost_answers(scene: Scene) -> None:
    """Answers that say nothing, over calls that did and did not take effect."""
    scene.start(
        "order_fulfilment",
        7_000_011,
        {"tool": "create_shipment", "mode": "applied_no_answer", "attempts": [1]},
    )
    scene.start(
        "order_fulfilment",
        7_000_012,
        {"tool": "create_shipment", "mode": "garbage", "applied": False, "attempts": [1]},
    )
    scene.start(
        "order_fulfilment",
        7_000_013,
        {"tool": "send_notice", "mode": "not_found", "applied": True, "attempts": [1]},
    )
    scene.start(
        "order_fulfilment", 7_000_014, {"tool": "reserve_stock", "mode": "fail_before", "attempts": [1]}
    )
    scene.settle()


def throttled(scene: Scene) -> None:
    """A storm of 429: paced, never counted as a failure."""
    ref = scene.start(
        "order_fulfilment",
        7_000_021,
        {"tool": "reserve_stock", "mode": "throttle", "attempts": [1, 2, 3, 4, 5, 6]},
    )
    scene.settle()
    scene.must(scene.facts(ref).state.value == "completed", f"throttled, it became {scene.facts(ref).state}")
    used = scene.facts(ref).action("reserve_stock").attempts_used
    scene.must(used == 1, f"what was throttled used up {used} attempts")


def zombie(scene: Scene) -> None:
    """A worker is buried while its call is out; it comes back with the answer after somebody else took over."""
    ref = scene.start("order_fulfilment", 7_000_031, {"tool": "get_reservation", "mode": "query_down"})
    old = workers.enrol("old")
    claimed = scene.claim(ref, old)
    assert claimed is not None
    claim, order = claimed
    order = scene.drive(claim, order, until=lambda one: isinstance(one, Call))
    seen = perform(order, scene.world)  # type: ignore[arg-type]
    scene.must(isinstance(seen, Answered), "there was no call")
    scene.die(old)
    scene.forward(1)
    new = scene.claim(ref, workers.enrol("new"))
    try:
        ledger.advance(claim, seen)
        scene.must(so=False, otherwise="a worker that had lost its claim was let on")
    except ClaimLost:
        pass
    if new is not None:
        with suppress(ClaimLost):
            scene.drive(*new)
    # What the zombie saw settles the step, although the query never answers.
    scene.settle()
    scene.must(
        scene.facts(ref).action("reserve_stock").state.value == "confirmed",
        f"the late answer settled nothing: {scene.facts(ref).action('reserve_stock').state}",
    )


def death(scene: Scene) -> None:
    """A worker dies with its call out, another before its call; nobody rings a bell for either."""
    for number in (7_000_041, 7_000_042):
        ref = scene.start("order_fulfilment", number)
        owner = workers.enrol("doomed")
        claimed = scene.claim(ref, owner)
        assert claimed is not None
        order = scene.drive(*claimed, until=lambda one: isinstance(one, Call))
        if number == 7_000_042:
            perform(order, scene.world)  # type: ignore[arg-type]
        scene.die(owner)
    scene.settle()
    for row in Run.objects.exclude(state="completed"):
        scene.must(so=False, otherwise=f"{row.ref} is {row.state}")


def leases(scene: Scene) -> None:
    """The database's clock is an hour ahead of the process; a lease runs out by that clock, and once for all."""
    scene.forward(3600)
    ref = scene.start("order_fulfilment", 7_000_051)
    owner = workers.enrol("worker")
    scene.must(workers.beat(owner), "a lease had run out when it was given")
    scene.forward(workers.LEASE_S + 1)
    scene.must(not workers.beat(owner), "a lease that had run out was renewed")
    scene.must(scene.claim(ref, owner) is None, "a run was claimed under a lease that had run out")
    scene.settle()


def late_byte(scene: Scene) -> None:
    """A process hangs between the commit of `sent` and its call for longer than the window."""
    ref = scene.start("order_fulfilment", 7_000_071)
    faultpoints.plan(
        faultpoints.Plan(point="call.before_first_byte", tool="reserve_stock", call=lambda: time.sleep(2.3))
    )
    owner = workers.enrol("slow")
    claimed = scene.claim(ref, owner)
    assert claimed is not None
    perform(claimed[1], scene.world)  # type: ignore[arg-type]
    faultpoints.plan()
    scene.must(
        not scene.outside.ledger(tool="reserve_stock", kind="arrived"),
        "a byte left after the window had closed",
    )
    scene.die(owner)
    scene.settle()


def prior_state(scene: Scene) -> None:
    """A ticket is changed; the state before is read before, and never again after the call, however old it is by then."""
    ref = scene.start(
        "ticket_change_notice",
        7_000_081,
        {"tool": "change_ticket", "mode": "no_answer", "attempts": [1]},
        given=_ticket_change(7_000_081),
    )
    lost = _drive_until_unknown(scene, ref, "change_ticket")
    scene.forward(lost.contract.prior_state.max_age_s + 30 if lost.contract.prior_state else 0)
    scene.settle()
    action = scene.facts(ref).action("change_ticket")
    scene.must(
        action.prior_read_at and action.prior_read_at <= action.attempts[0].sent_at,
        "the state before a call was read again after it was sent",
    )


def _ticket_change(number: int) -> Json:
    return {
        "ticket_id": f"T-{number % 900 + 1}",
        "customer": f"C-{number % 900 + 1}",
        "fields": {"queue": "billing", "priority": "high"},
        "customer_mail": "r@sample.example",
        "text": "Your ticket has changed.",
    }


def too_early(scene: Scene) -> None:
    """The first query does not know the call yet, and a person does not see its effect yet: neither proves anything."""
    ref = scene.start(
        "order_fulfilment",
        7_000_101,
        {"tool": "send_notice", "mode": "applied_no_answer", "attempts": [1]},
        {"tool": "query_notice", "mode": "query_absent", "times": 1},
    )
    lost = _drive_until_unknown(scene, ref, "send_notice")
    scene.at(lost.due_at)
    claimed = scene.claim(ref, workers.enrol("asks"))
    if claimed is not None:
        scene.drive(*claimed)
    scene.settle()
    sent = scene.outside.effects(business="O-7000101").count("send_notice")
    scene.must(sent == 1, f"{sent} notices went out")

    stuck = scene.start(
        "order_fulfilment",
        7_000_102,
        {"tool": "reserve_stock", "mode": "applied_no_answer", "attempts": [1]},
        {"tool": "get_reservation", "mode": "query_down"},
    )
    lost = _drive_until_unknown(scene, stuck, "reserve_stock")
    with durable(), opened(scene.run_id(stuck)) as desk:
        desk.hand_over(api.Reason.ESCALATED, action=None, actor=AGENT)
        desk.close(release=False)
    scene.at(lost.not_found_counts_at, before=2.0)
    status = scene.command(cast.MAYA, stuck, "resolve_not_happened", step="reserve_stock")
    scene.must(status >= 400, "a person's word that nothing happened was taken while it could still arrive")
    scene.outside.heal("get_reservation", match=stuck)
    scene.settle()


def _drive_until_unknown(scene: Scene, ref: str, step: str) -> ActionFacts:
    """One worker, up to the moment at which nobody knows what became of this step."""
    claimed = scene.claim(ref, workers.enrol("calls"))
    assert claimed is not None
    scene.drive(*claimed)
    action = scene.facts(ref).action(step)
    scene.must(action.state.value == "unknown", f"{step} is {action.state}, not unknown")
    return action


def repeated(scene: Scene) -> None:
    """Nobody knows whether it happened, a person has it repeated under its key; then the key is no longer kept."""
    ref = scene.start(
        "order_fulfilment",
        7_000_111,
        {"tool": "reserve_stock", "mode": "applied_no_answer", "attempts": [1]},
        {"tool": "reserve_stock", "mode": "refuse", "attempts": [2]},
        {"tool": "get_reservation", "mode": "query_down"},
    )
    scene.settle()
    scene.must(
        scene.command(cast.MAYA, ref, "retry", step="reserve_stock") < 300,
        "a repeat under its key was refused",
    )
    scene.drain()
    state = scene.facts(ref).action("reserve_stock").state.value
    scene.must(state != "rejected", "a refused repeat settled the earlier try")
    old = scene.start(
        "order_fulfilment",
        7_000_112,
        {"tool": "reserve_stock", "mode": "applied_no_answer", "attempts": [1]},
        {"tool": "get_reservation", "mode": "query_down"},
    )
    scene.settle()
    scene.forward(2 * 86_400)
    status = scene.command(cast.MAYA, old, "retry", step="reserve_stock")
    scene.must(status >= 400, "a key was relied on after the tool had forgotten it")
    scene.outside.heal("get_reservation", "reserve_stock", match=ref)
    scene.outside.heal("get_reservation", "reserve_stock", match=old)
    scene.settle()


def batch(scene: Scene) -> None:
    """A call over many: one part is not named in the answer, one is refused."""
    items = [{"id": f"ART-{number}"} for number in range(7_000_121, 7_000_125)]
    given = {"batch": "B-7000121", "label": "sale", "items": items}
    rule = {"tool": "relabel_items", "mode": "partial", "attempts": [1]}
    scene.start(
        "batch_relabel", 7_000_121, {**rule, "items": ["ART-7000122"], "item_state": "missing"}, given=given
    )
    items = [{"id": f"ART-{number}"} for number in range(7_000_131, 7_000_135)]
    given = {"batch": "B-7000131", "label": "sale", "items": items}
    scene.start(
        "batch_relabel", 7_000_131, {**rule, "items": ["ART-7000132"], "item_state": "locked"}, given=given
    )
    scene.settle()


def third_party(scene: Scene) -> None:
    """Somebody else has picked the shipment up: it must not be cancelled, a person is asked."""
    ref = scene.start("order_fulfilment", 7_000_141, {"tool": "send_notice", "mode": "refuse"})
    scene.settle()
    shipment = scene.facts(ref).action("create_shipment").provider_ref
    scene.outside.third_party(kind="shipment", id=shipment, state="picked_up")
    scene.must(scene.command(cast.MAYA, ref, "stop_and_compensate") < 300, "stop and compensate was refused")
    scene.settle()
    scene.must(
        not scene.outside.ledger(tool="cancel_shipment", kind="arrived"),
        "a call was made whose precondition did not hold",
    )


def stopped(scene: Scene) -> None:
    """A person stops a run between two steps, another one while a step of it is unknown."""
    calm = scene.start("order_fulfilment", 7_000_151)
    lost = scene.start(
        "order_fulfilment",
        7_000_152,
        {"tool": "create_shipment", "mode": "applied_no_answer", "attempts": [1]},
    )
    owner = workers.enrol("worker")
    for ref in (calm, lost):
        claimed = scene.claim(ref, owner)
        assert claimed is not None
        claim, order = claimed
        order = ledger.advance(claim, perform(order, scene.world))  # type: ignore[arg-type]
        if ref == lost:
            ledger.advance(claim, perform(order, scene.world), last=True)  # type: ignore[arg-type]
        else:
            ledger.advance(claim, perform(order, scene.world), last=True)  # type: ignore[arg-type]
        with durable(), opened(scene.run_id(ref)) as desk:
            desk.hand_over(api.Reason.ESCALATED, action=None, actor=AGENT)
            desk.close(release=False)
        scene.must(
            scene.command(cast.LIN, ref, "stop_and_compensate") < 300, "stop and compensate was refused"
        )
    scene.settle()
    for ref in (calm, lost):
        state = scene.facts(ref).state.value
        scene.must(state == "compensated", f"stopped, it became {state}")


def empty_promise(scene: Scene) -> None:
    """A compensation is answered with "released", and nothing was released."""
    scene.start(
        "order_fulfilment",
        7_000_161,
        {"tool": "create_shipment", "mode": "refuse"},
        {
            "tool": "release_stock",
            "mode": "wrong_schema",
            "applied": False,
            "body": {"reservation": "R-1", "state": "released"},
            "attempts": [1],
        },
    )
    scene.settle()


def people(scene: Scene) -> None:
    """A stale page, a refusal, a second click, an edit of what nobody knows."""
    ref = scene.start("order_fulfilment", 7_000_181, {"tool": "send_notice", "mode": "refuse"})
    lost = scene.start(
        "order_fulfilment",
        7_000_182,
        {"tool": "send_notice", "mode": "applied_no_answer"},
        {"tool": "query_notice", "mode": "query_down"},
    )
    scene.settle()
    stale = scene.facts(ref).version
    scene.must(scene.command(cast.MAYA, ref, "claim") < 300, "a claim was refused")
    scene.must(
        scene.command(cast.MAYA, ref, "retry", step="send_notice", saw=stale) == 409,
        "a stale page was accepted",
    )
    scene.must(
        scene.command(cast.JONAS, ref, "retry", step="send_notice") >= 400, "a claimed case was acted upon"
    )
    scene.command(cast.MAYA, lost, "retry", step="send_notice")
    edited = {"order": "O-7000182", "text": "Another text."}
    with suppress(NotAllowed):
        with api.transaction():
            handoff = scene.facts(lost).handoff
            assert handoff is not None
            with api.desk(
                handoff.ref, actor=actor_of(User.objects.get(username="lin")), reason=REASON
            ) as desk:
                desk.edit_and_retry("send_notice", args=edited)
        scene.must(so=False, otherwise="a call whose outcome nobody knows was edited")
    scene.settle()


SCENES: dict[str, Callable[[Scene], None]] = {
    scene.__name__: scene
    for scene in (
        turned_back,
        lost_answers,
        throttled,
        zombie,
        death,
        leases,
        rivals,
        late_byte,
        prior_state,
        frozen,
        too_early,
        repeated,
        batch,
        third_party,
        stopped,
        empty_promise,
        signed,
        people,
        herd,
        relay,
    )
}


def play(name: str) -> list[str]:
    """Play a scene and say what is wrong. What it raises is wrong too: a bug may break more than it bends."""
    scene = Scene()
    try:
        SCENES[name](scene)
    except Exception as error:  # noqa: BLE001  judged by whoever asked
        scene.wrong.append(f"raised: {error!r}"[:500])
    return scene.judged()
