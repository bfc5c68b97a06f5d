"""One verb for many cases: the frozen list, what goes on by itself, and the proof of each. Doors call `freeze_list`."""

from workbench.bulks import report
from workbench.bulks.lists import MOST_CASES, Chosen, freeze_list

__all__ = ["MOST_CASES", "Chosen", "freeze_list", "report"]
