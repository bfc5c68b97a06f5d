"""Serializers of request bodies. Those of commands are made from the commands' own dataclasses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rest_framework import serializers

from workbench.commands import (
    COMMANDS,
    SIGNOFF_COMMANDS,
    SYSTEM_COMMANDS,
    ArgumentField,
    Kind,
    fields_of,
)


class Strict(serializers.Serializer[Any]):
    """A serializer that does not overlook names it does not know."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, dict) else []
        if unknown:
            raise serializers.ValidationError({name: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


class StartRun(Strict):
    """The body of a start."""

    definition = serializers.CharField(max_length=100)
    version = serializers.IntegerField(required=False, min_value=1, max_value=2_147_483_647, allow_null=True)
    input = serializers.JSONField()
    business_ref = serializers.CharField(required=False, allow_blank=True, max_length=120, default="")
    intent = serializers.CharField(required=False, allow_blank=True, max_length=2000, default="")


class MakePreview(Strict):
    """What a preview is asked for."""

    verb = serializers.ChoiceField(choices=sorted(COMMANDS))
    step = serializers.CharField(required=False, allow_blank=True, max_length=80, default="")


class CommandBody(Strict):
    """What every command carries beside its own arguments."""

    saw_version = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=2_147_483_647
    )
    preview = serializers.CharField(required=False, allow_blank=True, max_length=40, default="")


@lru_cache(maxsize=64)
def command_body(verb: str) -> type[CommandBody]:
    """The body of one verb. It only says what there is: whether it will do is the dispatcher's answer,
    so that a refusal for another reason is not hidden behind a missing field.
    """
    command = COMMANDS.get(verb) or SIGNOFF_COMMANDS.get(verb) or SYSTEM_COMMANDS[verb]
    fields = {field.name: _serializer_field(field) for field in fields_of(command.arguments)}
    return type(f"{verb.title().replace('_', '')}Body", (CommandBody,), fields)


def _serializer_field(field: ArgumentField) -> serializers.Field[Any, Any, Any, Any]:
    shown = {"required": False, "label": field.label, "help_text": field.help}
    if field.kind is Kind.STEPS:
        return serializers.ListField(child=serializers.CharField(), **shown)
    return serializers.CharField(allow_blank=True, trim_whitespace=False, **shown)
