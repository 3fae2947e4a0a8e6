-- The first unfinished record of each share partition that waits, the oldest first.
-- Since when it could be worked on and was the first one; what stood before is not in it.
-- column: finished_behind = records behind it that are done; window_used = offsets up to the highest one logged
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, topic, topic_id, partition, first_incomplete_offset, delivery_count, since_time, since_clock,
  kind, finished_behind, window_used, completeness
FROM gold.stall
WHERE until_ms IS NULL AND (:group IS NULL OR group_id = :group)
ORDER BY since_ms NULLS LAST, cluster_id, group_id, topic_id, partition
