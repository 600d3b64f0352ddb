"""Between runs: bootstrap, significance, the regression gate, published results."""
