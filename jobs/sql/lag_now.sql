-- How far each share partition is behind, the worst first.
-- An unknown lag is null and comes last; unknown_reason says why.
-- column: lag = Kafka's own (KIP-1226); lag_stable = up to the last stable offset; why = what makes figures differ
-- param: group text = null; only this group
-- param: topic text = null; only the topic of this name
SELECT
  cluster_id, group_id, topic, topic_id, partition, start_offset, end_offset, lag, lag_stable, unknown_reason, why,
  log_time, completeness
FROM gold.lag
WHERE (:group IS NULL OR group_id = :group) AND (:topic IS NULL OR topic = :topic)
ORDER BY lag DESC NULLS LAST, cluster_id, group_id, topic_id, partition
