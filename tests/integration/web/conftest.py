"""Pages over the real engine, without a browser."""

from __future__ import annotations

from tests.integration.workbench.conftest import rejected_notice, unknown_notice, workplace

__all__ = ["rejected_notice", "unknown_notice", "workplace"]
