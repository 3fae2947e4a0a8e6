"""Share and streams groups: lists, descriptions, rebalances."""
