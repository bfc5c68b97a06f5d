"""Imports tool chains that others wrote down: one file becomes a definition and the contracts of its tools.

What the file does not say is never made up in silence: each assumption is a note for whoever checks the result.
"""

from tools.importer.chain import Chain, read_chain
from tools.importer.files import write
from tools.importer.translate import Imported, import_chain

__all__ = ["Chain", "Imported", "import_chain", "read_chain", "write"]
