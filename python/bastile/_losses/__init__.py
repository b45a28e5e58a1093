# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of a linear layer's outputs, without all the logits at a time.

Hidden states, the layer's weight and targets enter; losses and gradients leave. PyTorch
multiplies the matrices, the compiler's kernels make losses and gradients of the logits.
What a model does with a loss belongs to `bastile._patching`; a loss of logits that are
there is an op of the dialect.
"""
