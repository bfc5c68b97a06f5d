"""Judges what happened by four histories that know nothing of each other: the driver's own log, the simulated world's
ledger, the entries that the product hands out, and a snapshot of its tables.

Reads only; decides nothing for the product. The invariants are V1 to V14 of the catalogue of faults.
"""
