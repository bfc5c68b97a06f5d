"""The engine: runs, actions, compensations, handoffs. Everyone else comes in through `sagas.api`."""
