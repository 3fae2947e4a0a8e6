-- Offsets of Kafka's logs that the lake lacks, with the reason.
-- A later run may have filled one from another copy; `sharelens status` shows what is missing now.
-- column: content = log_record or topic_batch, the table that lacks them
SELECT
  cluster_id, topic, partition, content, gap.first_offset AS first_offset, gap.last_offset AS last_offset,
  gap.last_offset - gap.first_offset + 1 AS offsets, gap.reason AS reason, source_id, run_id
FROM (
  SELECT cluster_id, topic, partition, content, source_id, run_id, explode(gaps) AS gap
  FROM bronze.ingest_extent
  WHERE status = 'taken'
) AS taken
ORDER BY cluster_id, topic, partition, content, first_offset, run_id, source_id
