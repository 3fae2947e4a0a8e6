"""Consumer, share and streams groups: lists, descriptions, rebalances."""
