# Part of Bastile, under the MIT License. See LICENSE.
"""Imports everything that registers itself with PyTorch, in this room and above."""

from bastile._torch import dispatch as dispatch
from bastile._torch import flops as flops
from bastile._torch import followers

followers.call()
