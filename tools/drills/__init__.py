"""Drill files: scenarios with a closed vocabulary that are replayed against the real engine. No Django here."""
