-- What share state costs its coordinator, the most expensive share partitions first.
-- Records that the lake holds; what was pruned before is not counted.
-- column: bytes = keys and values; bytes_a_record = mean
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, topic_id, partition, state_partition,
  count(*) AS records,
  count(CASE WHEN record_type = 'snapshot' THEN 1 END) AS snapshots,
  count(CASE WHEN record_type = 'update' THEN 1 END) AS updates,
  CAST(sum(record_bytes) AS BIGINT) AS bytes,
  CAST(floor(sum(record_bytes) / count(*)) AS BIGINT) AS bytes_a_record
FROM silver.share_record
WHERE :group IS NULL OR group_id = :group
GROUP BY cluster_id, group_id, topic_id, partition, state_partition
ORDER BY bytes DESC, cluster_id, group_id, topic_id, partition, state_partition
