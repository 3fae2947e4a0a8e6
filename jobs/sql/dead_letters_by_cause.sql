-- Dead letters that arrived, by group, topic and cause.
-- `sharelens dlq` holds them against what was archived.
-- column: letters = records of the dead-letter topic; most_deliveries = the largest delivery count among them
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, topic, dlq_topic, cause, count(*) AS letters, max(delivery_count) AS most_deliveries,
  min(timestamp_ms) AS first_ms, max(timestamp_ms) AS last_ms
FROM silver.dlq_record
WHERE :group IS NULL OR group_id = :group
GROUP BY cluster_id, group_id, topic, dlq_topic, cause
ORDER BY letters DESC, cluster_id, group_id NULLS LAST, topic NULLS LAST, dlq_topic, cause NULLS LAST
