"""Observations: `Task`, `MetaData`, `PastTask`. Only `arrays.py` validates arrays."""
