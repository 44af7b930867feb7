"""Deliberate faults in copies of the source, each of which a test of its package must notice."""
