-- How often records were delivered before they were done, by group.
-- Counts as `sharelens attempts`: each record once a life, by its first outcome; what is still open is not in it, nor are gaps.
-- column: records = offsets with the outcome; delivery_count = the largest one in that life
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, upper(outcome) AS delivery_state_name, delivery_count,
  CAST(sum(offsets) AS BIGINT) AS records
FROM gold.attempts
WHERE outcome <> 'open' AND (:group IS NULL OR group_id = :group)
GROUP BY cluster_id, group_id, outcome, delivery_count
ORDER BY cluster_id, group_id, delivery_state_name, delivery_count
