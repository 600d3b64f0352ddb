"""Regions of label maps: overlaps of two segmentations, their one-to-one pairs, UCM hierarchies."""
