"""One view a page. A view reads, calls one command or none, and renders; it decides nothing."""
