"""Measurements of Bastile beside other libraries: ``python -m bastile.bench``."""
