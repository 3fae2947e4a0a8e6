-- Lag, start and end of share partitions over log time, for a chart: a row at each minute at which one of them changed.
-- A row holds from at_time up to until_time; null: up to the end of the evidence. A deleted share partition has a last row.
-- column: end_offset_inferred, lag_inferred = by the timestamps of batches, which producers set; unknown_reason = why there is no lag
-- param: group text = null; only this group
-- param: topic text = null; only the topic of this name
SELECT
  cluster_id, group_id, topic, topic_id, partition, at_time,
  lead(at_time) OVER (PARTITION BY cluster_id, group_id, topic_id, partition, state_partition ORDER BY at_ms) AS until_time,
  start_offset, end_offset_inferred, lag_inferred, unknown_reason, completeness
FROM gold.lag_over_time
WHERE (:group IS NULL OR group_id = :group) AND (:topic IS NULL OR topic = :topic)
ORDER BY cluster_id, group_id, topic_id, partition, at_time
