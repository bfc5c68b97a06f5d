"""`chaos points`: the closed list of fault points, as people read it or as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sagas.faultpoints import POINTS
from workbench.labs.chaos.door import Door


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true")


def _run(options: dict[str, Any], say: Callable[[str], None]) -> bool:
    if options["json"]:
        say(json.dumps([asdict(point) for point in POINTS.values()]))
        return True
    for point in POINTS.values():
        say(f"{point.name:26} {' '.join(point.crash_points):16} {point.sentence}")
    return True


DOOR = Door(
    help="list every fault point with its ids in the catalogue of faults", arguments=_arguments, run=_run
)
