"""What every room uses: errors, inputs, protocols, label maps, soft maps, counts, ratios."""
