"""Turn the engine's frozen facts into finished values for templates. Read nothing, write nothing."""
