"""What an invariant comes to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Found:
    """What one invariant found. `trials`: how many cases could have contradicted it."""

    trials: int = 0
    wrong: list[str] = field(default_factory=list)

    def look(self, so: bool, otherwise: str) -> None:
        """Count a case, and keep it when it contradicts."""
        self.trials += 1
        if not so:
            self.wrong.append(otherwise)

    @property
    def bound(self) -> float:
        """The 95 % upper bound of the rate after no failure in so many trials; 1.0 without any."""
        return min(1.0, 3 / self.trials) if self.trials else 1.0
