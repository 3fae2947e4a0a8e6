-- Records that wait for another delivery and have had several.
-- They are given up at share.delivery.count.limit, 5 unless it is set.
-- column: records = offsets from first_offset to last_offset; since_time = when they came into this state
-- param: deliveries integer = 2; this many at least
-- param: group text = null; only this group
SELECT
  d.cluster_id, d.group_id, d.topic, d.topic_id, d.partition, d.first_offset, d.last_offset,
  d.last_offset - d.first_offset + 1 AS records, d.delivery_count, d.valid_from_time AS since_time
FROM gold.delivery_history AS d
WHERE d.is_open AND d.delivery_state = 0 AND d.delivery_count >= :deliveries AND (:group IS NULL OR d.group_id = :group)
ORDER BY d.delivery_count DESC, d.valid_from_ms, d.cluster_id, d.group_id, d.topic_id, d.partition, d.first_offset
