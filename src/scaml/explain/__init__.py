"""The numbers that explain a suggestion: predictions, weights and shares of past tasks, sensitivity.

No text and no HTML: `report` turns the numbers into text and figures, `cli` prints them.
"""
