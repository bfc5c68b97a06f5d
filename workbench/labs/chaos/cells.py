"""The cells of the matrix: kind of contract x outside behaviour x position x direction; what the world is told for each.

A cell says what happens outside, never what must come of it: that follows from the laws (`judge`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.labs.chaos.contracts import KIND, KINDS, LIMIT_S, PLAIN, SETTLE_S, Kind

POSITIONS = {"first": (1, 2), "middle": (2, 3), "last": (2, 2)}
"""Number of the struck step, and how many steps there are."""
DIRECTIONS = ("forward", "compensation")

type Rule = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What the world does with the struck call: `call` rules, and `query` rules for whoever asks about it.

    `silent`: it never gives an answer that is clear under the contract, however often it is called. `refuses`: it
    says no for good.
    """

    call: tuple[Rule, ...] = ()
    query: tuple[Rule, ...] = ()
    silent: bool = False
    refuses: bool = False
    only: frozenset[str] = frozenset()


def _once(mode: str, **more: Any) -> tuple[Rule, ...]:
    return ({"mode": mode, "attempts": [1], **more},)


_APPLIED_UNANSWERED = _once("reset", applied=True)
_ASKED = frozenset(kind.name for kind in KINDS if kind.asked)
_LATER = frozenset({"later"})

_SLOW = frozenset({"late"})
"""Behaviours for which somebody has to wait by the real clock; they are played in one position alone."""

BEHAVIOURS: Mapping[str, Behaviour] = {
    "ok": Behaviour(),
    "refuse": Behaviour(call=({"mode": "refuse"},), refuses=True),
    "not_found": Behaviour(call=({"mode": "not_found"},), silent=True),
    "fail_before": Behaviour(call=_once("fail_before")),
    "fail_after": Behaviour(call=_once("fail_after")),
    "always_fails": Behaviour(call=({"mode": "fail_before"},), silent=True),
    "no_answer": Behaviour(call=_once("reset")),
    "applied_no_answer": Behaviour(call=_APPLIED_UNANSWERED),
    "never_answers": Behaviour(call=({"mode": "reset", "applied": True},), silent=True),
    "late": Behaviour(
        call=_once("late", delay_ms=round(1000 * LIMIT_S) + 500), only=frozenset({"keyed", "asked"})
    ),
    "late_effect": Behaviour(call=_once("late_effect", delay_ms=1500, reply="reset")),
    "garbage": Behaviour(call=_once("garbage")),
    "wrong_schema": Behaviour(call=_once("wrong_schema")),
    "cut": Behaviour(call=_once("cut")),
    "throttle": Behaviour(call=_once("throttle")),
    "unavailable": Behaviour(call=_once("query_down")),
    "query_down": Behaviour(
        call=_APPLIED_UNANSWERED, query=({"mode": "query_down", "for_s": 4.0},), only=_ASKED
    ),
    "query_absent": Behaviour(
        call=_APPLIED_UNANSWERED, query=({"mode": "query_absent", "for_s": SETTLE_S},), only=_ASKED
    ),
    "query_garbage": Behaviour(
        call=_APPLIED_UNANSWERED, query=({"mode": "garbage", "for_s": 4.0},), only=_ASKED
    ),
    "job_fails": Behaviour(call=({"mode": "job_fails"},), refuses=True, only=_LATER),
    **{
        f"callback_{how}": Behaviour(call=({"mode": f"callback_{how}"},), only=_LATER)
        for how in ("duplicate", "stale", "never", "forged")
    },
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of everything but the crash point."""

    kind: str
    behaviour: str
    position: str
    direction: str

    @property
    def name(self) -> str:
        """The cell's coordinates, as `--only` takes them."""
        return "/".join((self.kind, self.behaviour, self.position, self.direction))

    @property
    def of(self) -> Kind:
        """The kind of the struck tool."""
        return KIND[self.kind]

    @property
    def does(self) -> Behaviour:
        """What the world does with it."""
        return BEHAVIOURS[self.behaviour]

    @property
    def back(self) -> bool:
        """Whether the struck call is a compensation."""
        return self.direction == "compensation"

    @property
    def place(self) -> int:
        """The number of the struck step, from 1."""
        return POSITIONS[self.position][0]

    @property
    def steps(self) -> int:
        """How many steps there are; where the run is to turn back, one more is refused after them."""
        return POSITIONS[self.position][1]

    @property
    def tool(self) -> str:
        """The struck tool, as its contract names it."""
        return f"{'lift' if self.back else 'place'}_{self.kind}"

    @property
    def workflow(self) -> str:
        """The workflow that the cell runs."""
        return f"chaos_{self.kind}_{self.position}_{self.direction}"

    def tools(self) -> list[str]:
        """The tools of its steps."""
        plain = [f"place_{PLAIN}"] * self.steps
        plain[self.place - 1] = f"place_{self.kind}"
        return plain

    def rules(self, about: str) -> list[Rule]:
        """What the world is told before the run starts."""
        slot = slot_of(about, self.place)
        outside = (self.of.lift if self.back else self.of.place) or self.tool
        rules: list[Rule] = [{"tool": outside, "match": slot, **rule} for rule in self.does.call]
        for read in ("find_placement", "find_lifting", "get_line"):
            rules += [{"tool": read, "match": slot, "per": "rule", **rule} for rule in self.does.query]
        if self.back:
            rules.append(
                {"tool": f"place_{PLAIN}", "match": slot_of(about, self.steps + 1), "mode": "refuse"}
            )
        return rules


def slot_of(about: str, step: int) -> str:
    """Where a step of a case puts its placement; no other text of the case contains it."""
    return f"{about}.s{step}."


def cells() -> Iterator[Cell]:
    """Every cell there is."""
    for kind in KINDS:
        for name, behaviour in BEHAVIOURS.items():
            if behaviour.only and kind.name not in behaviour.only:
                continue
            for direction in DIRECTIONS:
                if direction == "compensation" and (name == "job_fails" or name.startswith("callback_")):
                    continue  # a compensation answers at once
                for position in ("middle",) if name in _SLOW else POSITIONS:
                    yield Cell(kind=kind.name, behaviour=name, position=position, direction=direction)
