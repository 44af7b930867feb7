"""Helpers that do not know about GPs: atomic file writes, joblib, progress, logging, messages."""
