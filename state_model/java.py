"""Java's String.hashCode and the partition rules that Kafka builds on it (share-group-state-log §1)."""

INT32_MIN = -(1 << 31)


def string_hash(text: str) -> int:
    """Java's String.hashCode: h = 31 * h + c over UTF-16 code units, wrapped to a signed 32-bit integer.

    A lone surrogate counts as its code unit.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed


def magnitude(hashed: int) -> int:
    """Kafka's abs: the smallest integer, which has no positive counterpart, becomes 0."""
    return 0 if hashed == INT32_MIN else abs(hashed)


def partition_of_hash(hashed: int, count: int) -> int:
    """The magnitude modulo the number of partitions."""
    if count < 1:
        raise ValueError(f"a topic has at least one partition, not {count}")
    return magnitude(hashed) % count


def coordinator_key(group_id: str, topic_id: str, partition: int) -> str:
    """The text that Kafka hashes for a share partition; also the key of FindCoordinator (key type 2)."""
    return f"{group_id}:{topic_id}:{partition}"


def partition_for(group_id: str, topic_id: str, partition: int, count: int) -> int:
    """State partition of a share partition, `topic_id` as 22 characters (ShareCoordinatorService.partitionFor)."""
    return partition_of_hash(string_hash(coordinator_key(group_id, topic_id, partition)), count)


def partition_for_group(group_id: str, count: int) -> int:
    """Partition of `__consumer_offsets` for a group."""
    return partition_of_hash(string_hash(group_id), count)
