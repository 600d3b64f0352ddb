"""What every package uses: errors, inputs, protocols, label maps, soft maps, counts, ratios."""
