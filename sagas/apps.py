"""Registers the engine with Django."""

from django.apps import AppConfig


class SagasConfig(AppConfig):
    """The engine's tables and commands."""

    name = "sagas"
    label = "sagas"
