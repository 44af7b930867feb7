"""This project's own evidence, which is not installed with scaml: run `python -m study --help`.

`choices/` has the alternatives around ScaML-GP; `regret_ratios.py`, `choices_figure.py` and
`calibration.py` compare them. `paper/` repeats the figures of the paper. `tables/` made the tables of
`scaml.bench`. `stored_results.py` keeps `results/` small.
"""
