# Part of Bastile, under the MIT License. See LICENSE.
"""Patches of models of Transformers, one step of patching a module.

Entries of a table enter: classes, and what they compute; methods that call Bastile's
kernels leave, put in the place of the originals. What a kernel computes belongs to ops
and `bastile._formulas`, how a loss is made to `bastile._losses`.
"""
