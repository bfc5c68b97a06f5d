"""Registers the workbench with Django."""

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    """People, sign-offs, receipts and everything on a screen."""

    name = "workbench"
    label = "workbench"
