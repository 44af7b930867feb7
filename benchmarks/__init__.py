"""Measurements whose figures stand in the documents; run by `make`, never by the tests."""
