-- Stalls that are over, the longest first.
-- What still stands is in oldest_open_record.
-- column: first_incomplete_offset = the record that held it; ended_by = moved, reset or deleted
-- param: group text = null; only this group
-- param: seconds integer = 60; this long at least
SELECT
  cluster_id, group_id, topic, topic_id, partition, duration_ms, since_time, until_time, kind, ended_by,
  first_incomplete_offset, finished_behind, completeness
FROM gold.stall
WHERE until_ms IS NOT NULL AND duration_ms >= 1000 * :seconds AND (:group IS NULL OR group_id = :group)
ORDER BY duration_ms DESC, cluster_id, group_id, topic_id, partition, log_offset
