"""The figures of the paper: their settings, and how they are drawn."""
