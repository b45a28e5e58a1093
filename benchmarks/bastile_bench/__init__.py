"""Measurements of Bastile beside other libraries: ``python -m bastile_bench``."""
