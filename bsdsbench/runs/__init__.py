"""From folders to an Evaluation: jobs, executors, stored records, results on disk, streaming."""
