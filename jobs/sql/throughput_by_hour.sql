-- Records that groups finished in each hour, by the brokers' own count.
-- How far start offset and delivery complete count moved together; before Kafka 4.2 there is no such count.
-- column: finished = acknowledged, given up, or passed because there was no record
-- param: group text = null; only this group
SELECT cluster_id, group_id, hour, CAST(sum(moved) AS BIGINT) AS finished, count(*) AS writes
FROM (
  SELECT
    cluster_id, group_id,
    date_trunc('hour', log_time) AS hour,
    start_offset + delivery_complete_count - lag(start_offset + delivery_complete_count) OVER (
      PARTITION BY cluster_id, log_topic_id, state_partition, group_id, topic_id, partition, life_log_offset
      ORDER BY log_offset
    ) AS moved
  FROM gold.share_partition_history
  WHERE start_offset >= 0 AND delivery_complete_count >= 0 AND (:group IS NULL OR group_id = :group)
) AS steps
WHERE moved > 0
GROUP BY cluster_id, group_id, hour
ORDER BY cluster_id, group_id, hour
