# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of the compiler: what is asked becomes a request, and that a loaded kernel.

Names of ops, modules of MLIR, Python functions and tensors of any library enter;
kernels, and the extension module's objects that run them, leave. Nothing here imports
PyTorch, or knows of models and losses: rooms above register themselves, the tuner's in
`schedules` and PyTorch's in `capture`.
"""
