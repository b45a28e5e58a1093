# Part of Bastile, under the MIT License. See LICENSE.
"""Fused functions at random: ``generate.make(seed, number)`` makes one, with its text, its
gradients, the bytes that it moves and the instructions that it takes."""
