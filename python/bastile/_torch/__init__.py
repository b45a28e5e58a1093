# Part of Bastile, under the MIT License. See LICENSE.
"""PyTorch's side of a call: autograd, registered operators, DTensor, generated code.

Calls enter that are on PyTorch's tensors and are no plain ones: with gradients, under
a transformation, or seen by torch.compile. They leave as calls of the extension module,
or as operators that PyTorch can trace. Every module but `gate` and `followers` imports
PyTorch, and is imported when a tensor of it comes. What an op computes does not belong
here, nor anything of a loss or a model: rooms above register themselves
(`followers`).
"""
