"""Acquisition functions, and their maximization on the cube, in mixed spaces and on tables."""
