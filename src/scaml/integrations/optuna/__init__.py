"""The Optuna sampler, past studies as past tasks, and the points that parallel workers reserve."""
