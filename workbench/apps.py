"""Registers the workbench with Django."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class WorkbenchConfig(AppConfig):
    """People, sign-offs, receipts and everything on a screen."""

    name = "workbench"
    label = "workbench"

    def ready(self) -> None:
        """A login counts as a confirmation of who it is."""
        from workbench.commands import sessions

        user_logged_in.connect(sessions.at_login, dispatch_uid="workbench.confirmed")
