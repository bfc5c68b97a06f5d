"""Reads for screens and doors. Nothing here writes."""
