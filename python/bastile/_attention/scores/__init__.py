# Part of Bastile, under the MIT License. See LICENSE.
"""Functions of scores and of positions, as PyTorch's `flex_attention` takes them.

A Python function that computes with PyTorch's tensors enters, and what it captures
(`captured`); symbols stand in for its arguments (`values`), and an operator leaves that has
the function as a part of its formula (`operators`).
"""
