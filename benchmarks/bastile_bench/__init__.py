# Part of Bastile, under the MIT License. See LICENSE.
"""Measurements of Bastile beside other libraries: ``python -m bastile_bench``."""
