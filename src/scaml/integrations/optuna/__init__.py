"""The Optuna sampler, past studies as past tasks, and points that workers reserve."""
