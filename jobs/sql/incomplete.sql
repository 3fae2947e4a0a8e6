-- Share partitions whose state does not rest on complete evidence.
-- The next snapshot of a share partition makes it complete again.
-- column: completeness_reason = orphan, gap, quarantined, truncated, ...
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, topic_id, partition, completeness, completeness_reason, misplaced, state_partition, log_offset,
  log_time
FROM gold.share_partition_state
WHERE completeness <> 'complete' AND (:group IS NULL OR group_id = :group)
ORDER BY cluster_id, group_id, topic_id, partition, state_partition
