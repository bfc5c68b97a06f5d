"""The outside world: contracts of tools, outcomes of calls, keys, adapters.

Knows nothing of Django, Celery or the database.
"""
