"""Writes what was imported: a folder for each chain, with the definition, its contracts and the notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tools.contract import Json
from tools.importer.translate import Imported


def texts(imported: Imported) -> dict[str, str]:
    """The files of a chain by their path below the target folder."""
    folder = imported.name
    notes = "".join(f"- {note}\n" for note in imported.notes)
    head = f"# {imported.definition['title']}\n\nTo be checked, because the source does not say it:\n\n"
    files = {f"{folder}/workflow.json": _json(imported.definition), f"{folder}/NOTES.md": head + notes}
    for contract in imported.contracts:
        files[f"{folder}/contracts/{contract['tool']}.json"] = _json(contract)
    return files


def write(imported: Imported, out: Path) -> Iterator[Path]:
    """Write the files below `out`, telling each. OSError as usual."""
    for name, text in texts(imported).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        yield path


def _json(document: Json) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
