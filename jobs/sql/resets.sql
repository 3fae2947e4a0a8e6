-- Lives of share partitions that began although an earlier one was known: resets and re-creations, the newest first.
-- Looks back from the newest record of the lake. `sharelens life` also tells what was skipped or replayed.
-- column: start_offset_before = as the state before had it
-- param: days integer = 7; how far back
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, topic_id, partition, log_time, state_epoch_before, state_epoch, start_offset_before, start_offset,
  state_partition, log_offset
FROM (
  SELECT
    h.*,
    lag(h.start_offset) OVER w AS start_offset_before,
    lag(h.state_epoch) OVER w AS state_epoch_before,
    lag(h.log_offset) OVER w AS log_offset_before
  FROM gold.share_partition_history AS h
  WINDOW w AS (
    PARTITION BY h.cluster_id, h.log_topic_id, h.state_partition, h.group_id, h.topic_id, h.partition
    ORDER BY h.log_offset
  )
) AS o
WHERE life_log_offset = log_offset AND log_offset_before IS NOT NULL
  AND log_time_ms >= (SELECT max(log_time_ms) FROM gold.share_partition_history) - 86400000 * :days
  AND (:group IS NULL OR group_id = :group)
ORDER BY log_time_ms DESC, cluster_id, state_partition, log_offset
