-- How far the published evidence reaches, by state partition.
-- Log time stands still while no share state is written.
-- column: end_log_offset_exclusive = above the last record of the lake; held_back = offsets at or above the high watermark
SELECT
  held.cluster_id AS cluster_id, held.state_partition AS state_partition, held.first_log_offset AS first_log_offset,
  held.end_log_offset_exclusive AS end_log_offset_exclusive, held.first_log_time_ms AS first_log_time_ms,
  held.log_time_ms AS log_time_ms, held.held_back AS held_back, published_at_ms, run_id
FROM (
  SELECT run_id, published_at_ms, explode(evidence) AS held
  FROM gold.publication
  WHERE run_id = (SELECT max(run_id) FROM gold.publication)
) AS newest
ORDER BY cluster_id, state_partition
