"""Labels of articles, changed many at a time: one call, an answer for each article.

Each function is one operation of one system, run inside the transaction that applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tools.simulator import versioned
from tools.simulator.route import Route, back, do, read
from tools.simulator.store import Tables, Thing
from tools.simulator.wire import Answer, Call, Effect, Json, Refused

MOST = 500
MISSING = "missing"


def relabel_items(tables: Tables, call: Call) -> Answer:
    """Put a label on up to 500 articles: 200 when all carry it now, else 207. An article that has it stays."""
    batch, label, items = call.text("batch"), call.text("label"), call.value("items")
    if not isinstance(items, list) or not 0 < len(items) <= MOST:
        raise Refused(422, "invalid", f"items must be a list of 1 to {MOST}", field="items")
    results: list[dict[str, Json]] = []
    effects: list[Effect] = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            raise Refused(422, "invalid", "every item has an id", field="items")
        told = _told(call, item["id"])
        result = {"id": item["id"], "state": told} if told else _relabelled(tables, call, item, label)
        if result.pop("written", False):
            detail = {"id": item["id"], "label": label}
            effects.append(Effect(business=batch, detail=detail, key=str(item.get("key") or "")))
        if told != MISSING:
            results.append(result)
    whole = len(results) == len(items) and all(result["state"] == "done" for result in results)
    body = {"batch": batch, "results": results}
    return Answer(status=200 if whole else 207, body=body, more=tuple(effects))


def _told(call: Call, id_: str) -> str:
    return str(call.told.get("item_state", "busy")) if id_ in call.told.get("items", ()) else ""


def _relabelled(tables: Tables, call: Call, item: Mapping[str, Json], label: str) -> dict[str, Json]:
    try:
        thing = versioned.current(tables, "article", item["id"])
    except Refused:
        return {"id": item["id"], "state": "unknown_article"}
    if thing.state != "active":
        return {"id": thing.id, "state": thing.state}
    before, key = thing.body["fields"]["label"], str(item.get("key") or call.key)
    written = before != label
    if written:
        thing = versioned.written(tables, thing, {"label": label}, key)
    else:
        before = _before(thing, key) or before
    version = int(thing.body["version"])
    return {
        "id": thing.id,
        "state": "done",
        "reference": f"{thing.id}/{version}",
        "before": before,
        "version": version,
        "written": written,
    }


def _before(thing: Thing, key: str) -> str:
    history = thing.body["history"]
    for earlier, entry in pairwise(history):
        if key and entry["key"] == key:
            return str(earlier["fields"]["label"])
    return ""


def restore_label(tables: Tables, call: Call) -> Answer:
    """Put an earlier label back on one article; 412 when somebody has changed it since."""
    thing = versioned.current(tables, "article", call.params["id"])
    label = call.text("label")
    versioned.insist(call, thing)
    thing = versioned.written(tables, thing, {"label": label}, call.key)
    effect = Effect(business=call.text("batch"), detail={"id": thing.id, "label": label})
    return Answer(status=200, body=_shown(thing, call.key), effect=effect)


def get_label(tables: Tables, call: Call) -> Answer:
    """The label of one article; asked with a key, also which version that key made and what stood before."""
    thing = versioned.current(tables, "article", call.params["id"])
    return Answer(status=200, body=_shown(thing, call.query.get("key", "")))


def _shown(thing: Thing, key: str) -> dict[str, Json]:
    """`now` is the present version, `version` the one that the key's write made."""
    body = {
        "id": thing.id,
        "label": thing.body["fields"]["label"],
        "state": thing.state,
        "now": thing.body["version"],
    }
    wrote = versioned.shown(thing, key).get("write")
    if wrote is None:
        return body
    version = wrote["version"]
    return {**body, "reference": f"{thing.id}/{version}", "before": _before(thing, key), "version": version}


ROUTES: tuple[Route, ...] = (
    do("relabel_items", "batch", "relabel", "POST /relabels", relabel_items),
    back(
        "restore_label",
        "batch",
        "restore",
        "POST /articles/{id}/restoring",
        restore_label,
        of="relabel_items",
    ),
    read("get_label", "batch", "/articles/{id}", get_label),
)
