-- How often records were delivered before they were done, by group.
-- Counts each offset once a life, with its last state; what is still open is not in it.
-- column: records = offsets whose last state this is
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, delivery_state_name, delivery_count,
  CAST(sum(last_offset - first_offset + 1) AS BIGINT) AS records
FROM gold.delivery_history
WHERE delivery_state IN (2, 4)
  AND (end_reason IS NULL OR end_reason NOT IN ('changed', 'split_or_joined'))
  AND (:group IS NULL OR group_id = :group)
GROUP BY cluster_id, group_id, delivery_state_name, delivery_count
ORDER BY cluster_id, group_id, delivery_state_name, delivery_count
