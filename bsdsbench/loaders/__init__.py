"""Reading of predictions and ground truth: file formats, pairing by image, and known data sets."""
