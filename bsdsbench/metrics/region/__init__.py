"""The region benchmark: covering, PRI, VOI, objects and parts, and more."""
