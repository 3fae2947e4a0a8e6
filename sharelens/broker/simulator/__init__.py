"""Simulated logs and the true states from a seed: the broker's own parts in virtual time, without sockets."""
