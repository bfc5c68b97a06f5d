"""The REST interface: translates HTTP to commands and reads, and holds no rule of its own."""
