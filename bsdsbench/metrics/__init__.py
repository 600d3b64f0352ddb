"""One module a metric: one image to counts, counts to scores."""
