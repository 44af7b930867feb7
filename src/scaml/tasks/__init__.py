"""What was observed: `Task`, `MetaData`, `PastTask`. `arrays.py` alone validates arrays."""
