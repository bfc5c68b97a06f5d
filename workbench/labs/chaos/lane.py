"""One lane of the matrix: plays cells on a database and a world of its own, one case after another.

`python -m workbench.labs.chaos.lane` reads orders, a JSON object a line: {"cell": [kind, behaviour, position,
direction], "only": text, "points": list, "most": number or null} or {"errand": fault point}. It answers an outcome a
line, then {"played": number of cases}. Each case forks one preloaded child that drives the run until the strike kills
it; the lane recovers and judges.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import django


def main() -> None:
    """Serve orders until standard input ends."""
    django.setup()
    from workbench.labs.chaos.cells import Cell
    from workbench.labs.chaos.player import Player

    player = Player(prefix=os.environ["CHAOS_LANE"])
    for line in sys.stdin:
        order = json.loads(line)
        if "errand" in order:
            print(json.dumps(asdict(player.run_errand(order["errand"]))), flush=True)
            print(json.dumps({"played": 1}), flush=True)
            continue
        kind, behaviour, position, direction = order["cell"]
        cell = Cell(kind=kind, behaviour=behaviour, position=position, direction=direction)
        played = 0
        for outcome in player.play(
            cell, only=order["only"], points=frozenset(order["points"]), most=order["most"]
        ):
            print(json.dumps(asdict(outcome)), flush=True)
            played += 1
        print(json.dumps({"played": played}), flush=True)


if __name__ == "__main__":
    main()
