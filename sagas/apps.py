"""Registers the engine with Django."""

from django.apps import AppConfig


class SagasConfig(AppConfig):
    """The engine's tables and commands."""

    name = "sagas"
    label = "sagas"

    def ready(self) -> None:
        """Register the checks of the deployment."""
        from sagas import checks  # noqa: F401  models are there only now
