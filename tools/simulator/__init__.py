"""The world outside, simulated: its own process, its own store, standard library only.

It imports nothing of the product and nothing of the product imports it: they meet over loopback HTTP alone.
"""
