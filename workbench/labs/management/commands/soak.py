"""`manage.py soak --runs 1000 --seed 7`: the soak of S2-14 with real processes, progress and a verdict line."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workbench.labs.soak import soak


class Command(BaseCommand):
    """Random failures over the bank flow, judged by the simulated world."""

    help = "Run the bank flow many times with a failure at a random step each; exits with an error if it does not hold."
    requires_system_checks: list[str] = []  # its database does not run yet

    def add_arguments(self, parser: CommandParser) -> None:
        """How many runs, and the seed that makes them the same again."""
        parser.add_argument("--runs", type=int, default=1000)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--json", action="store_true", help="the verdict as JSON on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Soak and tell."""
        verdict = soak(options["runs"], seed=options["seed"], progress=self.stdout.write)
        for problem in (*verdict.inconsistent, *verdict.stuck, *verdict.out_of_order)[:50]:
            self.stdout.write(f"  {problem}")
        self.stdout.write(verdict.line())
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {
                        "runs": verdict.runs,
                        "ends": dict(verdict.ends),
                        "inconsistent": verdict.inconsistent,
                        "stuck": verdict.stuck,
                        "out_of_order": verdict.out_of_order,
                        "mean_compensation_s": round(verdict.mean_compensation_s, 3),
                        "refused_starts": verdict.refused_starts,
                    }
                )
            )
        if not verdict.holds:
            raise CommandError("The soak does not hold.")
