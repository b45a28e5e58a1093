# Part of Bastile, under the MIT License. See LICENSE.
"""Divergences of a student's softmax from a teacher's, for distillation.

Chunks and gradients are those of the other losses; here is what is computed of a chunk's
logits of both.
"""
