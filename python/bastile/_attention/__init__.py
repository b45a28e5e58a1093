# Part of Bastile, under the MIT License. See LICENSE.
"""Attention with the arguments that PyTorch and other libraries have for it.

Heads [batch, heads, sequence, size] enter, with masks, biases and sinks, or with Python
functions that say what becomes of each score; they leave as operands of one formula
(`bastile._formulas.attention`), which an operator computes.
"""
