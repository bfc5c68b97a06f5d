"""Drills: files of `tools.drills` played against the real engine in an arena, and judged by what happened outside."""
