# Part of Bastile, under the MIT License. See LICENSE.
"""The products of a model's linear layers, where they are done in another way.

The layers of a module and their operands enter; what the model's own forward would have
computed leaves, in fewer kernels or with less kept for the backward. `sizes` says for
which sizes which way is the faster one.
"""
