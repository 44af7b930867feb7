"""What several methods share: GPs per task, ensembles, networks, initial points."""
