"""Files written whole or not at all, joblib, progress, words: what knows nothing of GPs."""
