-- Records given up, by group, topic and cause.
-- Causes are those of `sharelens poison`: of the dead letter, else by state log, headers and settings. Gaps are no records.
-- column: records = offsets; most_deliveries = the largest delivery count among them
-- param: group text = null; only this group
SELECT
  p.cluster_id, p.group_id, p.topic, p.topic_id, p.cause,
  CAST(sum(p.last_offset - p.first_offset + 1) AS BIGINT) AS records,
  max(p.delivery_count) AS most_deliveries,
  min(p.first_outcome_time) AS first_outcome_time,
  max(p.last_outcome_time) AS last_outcome_time
FROM gold.poison_record AS p
WHERE p.cause <> 'gap' AND (:group IS NULL OR p.group_id = :group)
GROUP BY p.cluster_id, p.group_id, p.topic, p.topic_id, p.cause
ORDER BY records DESC, p.cluster_id, p.group_id, p.topic_id, p.cause
