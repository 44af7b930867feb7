"""Parameters to and from the columns of X in the unit cube, and past tasks of other spaces."""
