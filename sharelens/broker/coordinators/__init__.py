"""The coordinators: share state, share groups, consumer groups, transactions, each on its own internal log."""
