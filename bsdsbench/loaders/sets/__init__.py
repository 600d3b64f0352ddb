"""Sets of images: their fingerprints, public ones and where they come from."""
