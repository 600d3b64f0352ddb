"""How a prediction is turned into counts: the protocol, its presets, a result's signature."""
