"""One module per metric: one image to counts, counts to scores."""
