"""The only writer of state: locks, decides, and writes state, entry and outbox row in one transaction."""
