"""Serializers of request bodies. Those of commands are made from the commands' own dataclasses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rest_framework import serializers

from sagas import api
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


class Account(Strict):
    """An agent's own account of a step."""

    why = serializers.CharField(required=False, allow_blank=True, max_length=2000, default="")
    evidence = serializers.CharField(required=False, allow_blank=True, max_length=4000, default="")


class AdHoc(Account):
    """One step of a run without a published workflow."""

    id = serializers.RegexField(r"^[a-z][a-z0-9_]{0,62}$")
    tool = serializers.CharField(max_length=100)
    args = serializers.JSONField()
    on_rejected = serializers.ChoiceField(
        choices=["", "compensate", "handoff", "continue"], required=False, default=""
    )


class StartRun(Strict):
    """The body of a start: a published definition with its input, or a title with steps."""

    definition = serializers.CharField(max_length=100, required=False, default="")
    steps = AdHoc(many=True, required=False, allow_empty=False)
    title = serializers.CharField(required=False, allow_blank=True, max_length=200, default="")
    accounts = serializers.DictField(child=Account(), required=False)
    remedy_for = serializers.CharField(required=False, allow_blank=True, max_length=40, default="")
    version = serializers.IntegerField(required=False, min_value=1, max_value=2_147_483_647, allow_null=True)
    input = serializers.JSONField(required=False, default=dict)
    business_ref = serializers.CharField(required=False, allow_blank=True, max_length=120, default="")
    intent = serializers.CharField(required=False, allow_blank=True, max_length=2000, default="")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of the two, never both."""
        if bool(attrs["definition"]) == ("steps" in attrs):
            raise serializers.ValidationError(
                {"definition": ["Name a published definition, or give steps; not both."]}
            )
        if "steps" in attrs and not attrs["title"]:
            raise serializers.ValidationError({"title": ["Say in a few words what these steps are for."]})
        return attrs


class Replan(Strict):
    """The body of a change of plan (S0-6)."""

    kind = serializers.ChoiceField(choices=api.REPLANS)
    reason = serializers.CharField(max_length=2000)
    step = serializers.CharField(required=False, allow_blank=True, max_length=80, default="")
    evidence = serializers.CharField(required=False, allow_blank=True, max_length=4000, default="")


class MakePreview(Strict):
    """What a preview is asked for."""

    verb = serializers.ChoiceField(choices=sorted(COMMANDS))
    step = serializers.CharField(required=False, allow_blank=True, max_length=80, default="")
    arguments = serializers.DictField(child=serializers.JSONField(), required=False, default=dict)


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
    fields = {field.name: _serializer_field(field) for field in fields_of(command)}
    return type(f"{verb.title().replace('_', '')}Body", (CommandBody,), fields)


def _serializer_field(field: ArgumentField) -> serializers.Field[Any, Any, Any, Any]:
    shown = {"required": False, "label": field.label, "help_text": field.help}
    if field.kind is Kind.DOCUMENT:
        return serializers.JSONField(**shown)
    if field.kind in (Kind.STEPS, Kind.ITEMS):
        return serializers.ListField(child=serializers.CharField(), **shown)
    if field.choices:
        shown["help_text"] = ", ".join(field.choices)
    return serializers.CharField(allow_blank=True, trim_whitespace=False, **shown)
