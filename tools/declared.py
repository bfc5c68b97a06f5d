"""Whether a JSON Schema has a place for a pointer: finds typing errors in contracts and definitions."""

from __future__ import annotations

from tools.contract import Json
from tools.pointers import find, is_pointer, parts

_COMBINED = ("allOf", "anyOf", "oneOf")


def declares(schema: Json, pointer: str) -> bool:
    """Whether a value that fits `schema` may have something at `pointer`.

    A schema that lists no properties says nothing against one; one that lists some is taken at its word.
    """
    return _declares(schema, parts(pointer), schema, 0)


def requires(schema: Json, name: str) -> bool:
    """Whether every value that fits `schema` has the property `name` (or the schema does not tell)."""
    if not isinstance(schema, dict) or "properties" not in schema:
        return True
    return name in schema.get("required", ())


def _declares(schema: Json, path: tuple[str, ...], root: Json, hops: int) -> bool:
    if not isinstance(schema, dict):
        return schema is not False or not path
    if not path or hops > 50:
        return True
    if "$ref" in schema:
        inside = str(schema["$ref"]).removeprefix("#")
        target = find(root, inside) if is_pointer(inside) else None
        return _declares(target, path, root, hops + 1) if isinstance(target, dict) else True
    for keyword in _COMBINED:
        if keyword in schema:
            branches = [_declares(one, path, root, hops + 1) for one in schema[keyword]]
            return any(branches) or ("properties" in schema and _member(schema, path, root, hops))
    return _member(schema, path, root, hops)


def _member(schema: dict[str, Json], path: tuple[str, ...], root: Json, hops: int) -> bool:
    name, rest = path[0], path[1:]
    if name.isdigit() and ("items" in schema or "prefixItems" in schema):
        listed = schema.get("prefixItems", [])
        inner = listed[int(name)] if int(name) < len(listed) else schema.get("items", True)
        return _declares(inner, rest, root, hops + 1)
    properties = schema.get("properties")
    if properties is None:
        return True
    if name in properties:
        return _declares(properties[name], rest, root, hops + 1)
    extra = schema.get("additionalProperties")
    return isinstance(extra, dict) and _declares(extra, rest, root, hops + 1)
