"""What the columns of X mean: parameters to and from the unit cube, and spaces that differ."""
