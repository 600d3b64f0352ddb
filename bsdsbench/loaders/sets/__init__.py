"""Known sets of images: their fingerprints, and the public sets with their sources."""
