"""Why: weights and shares of past tasks, leave-one-out, sensitivity. Numbers only, no HTML."""
