"""The `{name}` placeholders of a contract's path: which there are, and how an argument goes into one."""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_-]+)\}")
