"""Reading: pictures, MATLAB and numpy files, pairing, official txt files, the sample. No metric."""
