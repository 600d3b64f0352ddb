"""Run detectors, the user's or built-in ones, and apply NMS to a folder of maps."""
