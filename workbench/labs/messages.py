"""`python -m workbench.labs.messages`: gathers every sentence of the screens and compiles the translations.

Pure Python (Babel): nobody needs gettext's programs. `--check` changes nothing and fails when a sentence is
missing or untranslated, or when a compiled file is older than its source.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent.parent
LANGUAGES = ("zh_Hans",)
SOURCES = ("workbench", "templates")
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
HEADER = """msgid ""
msgstr ""
"Project-Id-Version: Amends 1\\n"
"Language: {language}\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""
NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def gather() -> Catalog:
    """Every sentence in code and templates, with where it stands."""
    catalog = Catalog(project="Amends", fuzzy=False)
    for path in _files():
        source = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            # Indentation means nothing to a template, but much to the tokenizer that reads what is left of it.
            source = "\n".join(line.lstrip() for line in templatize(source, origin=str(path)).splitlines())
        found = extract("python", io.BytesIO(source.encode()), KEYWORDS, ())
        for _line, message, comments, context in found:
            place = (path.relative_to(ROOT).as_posix(), 0)
            catalog.add(message, locations=[place], auto_comments=comments, context=context)
    return catalog


def _files() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".html") and "migrations" not in path.parts:
                yield path


def source_of(language: str) -> Path:
    """The translations as people edit them."""
    return ROOT / "locale" / language / "LC_MESSAGES" / "django.po"


def stored(language: str) -> Catalog:
    """The translations as they are now; empty before the first time."""
    path = source_of(language)
    if not path.exists():
        return Catalog(locale=language, project="Amends", fuzzy=False)
    with path.open("rb") as file:
        catalog = read_po(file, locale=language)
    catalog.creation_date = catalog.revision_date = NO_TIME
    return catalog


def untranslated(gathered: Catalog, translated: Catalog) -> list[str]:
    """The sentences that a reader of this language would see in English."""
    missing = []
    for message in gathered:
        if not message.id:
            continue
        known = translated.get(message.id, message.context)
        parts = () if known is None else known.string if message.pluralizable else (known.string,)
        if not parts or not all(parts) or (known is not None and known.fuzzy):
            missing.append(message.id if isinstance(message.id, str) else message.id[0])
    return missing


def compiled(translated: Catalog) -> bytes:
    """The file that Django reads."""
    buffer = io.BytesIO()
    write_mo(buffer, translated)
    return buffer.getvalue()


def update(language: str, gathered: Catalog) -> None:
    """Put new sentences into the source, drop what is not used any more, compile."""
    translated = stored(language)
    translated.update(gathered, no_fuzzy_matching=True)
    translated.obsolete.clear()
    write(language, translated)


def write(language: str, translated: Catalog) -> None:
    """Store the source and what Django reads. No person and no time of day: equal words are equal files."""
    buffer = io.BytesIO()
    write_po(buffer, translated, width=110, sort_output=True, include_lineno=False, omit_header=True)
    path = source_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(HEADER.format(language=language).encode() + buffer.getvalue())
    path.with_suffix(".mo").write_bytes(compiled(stored(language)))


def problems() -> list[str]:
    """What `--check` complains about."""
    gathered, found = gather(), []
    for language in LANGUAGES:
        translated, path = stored(language), source_of(language)
        found += [
            f"{language}: not translated: {sentence}" for sentence in untranslated(gathered, translated)
        ]
        if not path.with_suffix(".mo").exists() or path.with_suffix(".mo").read_bytes() != compiled(
            translated
        ):
            found.append(f"{language}: the compiled file does not match its source")
    return found


def main() -> int:
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.labs.messages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, say what is missing")
    if not settings.configured:
        settings.configure()
    if not parser.parse_args().check:
        gathered = gather()
        for language in LANGUAGES:
            update(language, gathered)
    found = problems()
    print("\n".join(found) or "Every sentence is translated.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
