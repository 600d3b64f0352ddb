"""Reading: images, MATLAB and numpy files, pairing, official txt files, the sample."""
