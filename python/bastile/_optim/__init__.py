# Part of Bastile, under the MIT License. See LICENSE.
"""Steps of optimizers and norms of gradients, of tensors of any shape.

PyTorch's tensors enter; kernels that have rows of a few lengths leave them changed. What
a group of parameters is and what its state is called is up to `bastile.optim`.
"""
