"""A fitted prior from the past and on disk: fit, cache, save, load."""
