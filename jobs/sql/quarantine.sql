-- What could not be read or was set aside, by topic and reason.
-- docs/reference/quarantine.md explains the reasons.
-- column: rows_set_aside = batches or records; newest_run = the run that met the last one
SELECT
  cluster_id, topic, partition, reason, count(*) AS rows_set_aside, max(run_id) AS newest_run,
  max(detail) AS a_detail
FROM bronze.quarantine
GROUP BY cluster_id, topic, partition, reason
ORDER BY cluster_id, topic, partition, reason
