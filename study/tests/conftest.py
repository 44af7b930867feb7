"""Settings of the study's tests."""

from __future__ import annotations

import torch

# Small matrices are slower on two threads than on one, and test processes share the cores.
torch.set_num_threads(1)
