"""Registers the proving ground's commands with Django; production does without."""

from django.apps import AppConfig


class LabsConfig(AppConfig):
    """Demo, drills and soak; it has no tables."""

    name = "workbench.labs"
    label = "labs"
