-- What the group coordinator wrote of each group, by kind of record.
-- The log is compacted: of older changes only the last one of each key may be left.
-- column: deletions = tombstones; members = different ones that the records name, also those that left; last_change_ms = timestamp of the newest record
-- param: group text = null; only this group
SELECT
  cluster_id, group_id, record_name, count(*) AS records,
  count(CASE WHEN is_tombstone THEN 1 END) AS deletions,
  count(DISTINCT member_id) AS members,
  max(timestamp_ms) AS last_change_ms
FROM silver.group_record
WHERE :group IS NULL OR group_id = :group
GROUP BY cluster_id, group_id, record_name
ORDER BY cluster_id, group_id, record_name
