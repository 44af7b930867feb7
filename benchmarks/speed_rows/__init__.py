"""What `make speed` measures, one file per kind of work."""
