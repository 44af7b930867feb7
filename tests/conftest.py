"""Settings of all tests."""

import torch
from hypothesis import settings

# Small matrices are slower on two threads than on one, and test processes share the cores.
torch.set_num_threads(1)

# The same examples every time: a failure that nobody can see again helps nobody.
settings.register_profile("scaml", derandomize=True, deadline=None)
settings.load_profile("scaml")
