# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels that several callers share and no single op is, each traced from a formula.

Formulas of `bastile.functions` enter; operators leave that are called on tensors like
ops. What can be one op belongs to the dialect.
"""
