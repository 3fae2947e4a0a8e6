"""Mutation tests of two trees: whether a change to the tests lets faults live that died before it."""
