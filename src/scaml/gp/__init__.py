"""Many small exact GPs at once: kernels, likelihood with its gradient, MAP fits.

Nothing here knows of meta-learning.
"""
