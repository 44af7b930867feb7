"""The paper: Lemma 1, Theorem 1, equations 5 and 9, Algorithm 1; and what we add to it."""
