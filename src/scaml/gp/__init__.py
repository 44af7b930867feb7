"""Many small exact GPs at once: kernels, likelihood with its gradient, MAP fits.

No meta-learning here, except that `TaskGPs` holds one GP per task.
"""
