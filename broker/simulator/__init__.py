"""Logs and their truth from a seed: the broker's own parts in virtual time, without sockets."""
