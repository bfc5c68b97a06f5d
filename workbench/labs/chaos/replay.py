"""`manage.py chaos replay FILE`: a soak once more, with the faults and the jobs of the one that wrote this report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from workbench.labs.chaos import soak
from workbench.labs.chaos.door import Door, Say
from workbench.labs.chaos.report import plan_of


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("file", type=Path, help="what `chaos soak --json FILE` has written")
    parser.add_argument("--json", type=Path, help="where the new report goes")


def _run(options: dict[str, Any], say: Say) -> bool:
    before = json.loads(options["file"].read_text())
    seed, seconds = int(before["seed"]), float(before["seconds"])
    changed = [name for name, digest in plan_of(seed, seconds).items() if before[name] != digest]
    if changed:
        say(f"This seed no longer plans what it did ({', '.join(changed)}): nothing was played.")
        return False
    return soak.run({"seed": seed, "minutes": seconds / 60, "json": options["json"]}, say)


DOOR = Door(help="play a soak again from its report", arguments=_arguments, run=_run)
