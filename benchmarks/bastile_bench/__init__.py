# Part of Bastile, under the MIT License. See LICENSE.
"""Measurements of Bastile beside other libraries: ``python -m bastile_bench``.

Ops, shapes and models enter; results leave as tables, JSON, CSV and plots. Nothing of
the package `bastile` imports this one, and no wheel has it.
"""
