# Part of Bastile, under the MIT License. See LICENSE.
"""The gradients of a linear layer's operands, as they grow by pieces of the logits."""

from bastile._losses.products import BiasSum, Sum, kept_type

_ALL = slice(None)


class ChunkGradients:
    """The gradients of hidden states, weight and bias that are ``wanted``, by chunks of
    tokens.

    That of the hidden states is one product for each token, that of the weight a sum
    over chunks. Where the gradient of the hidden states ``is_shared``, it is a sum over
    processes.
    """

    def __init__(self, hidden, weight, wanted, chunks, is_shared=False):
        kept = kept_type(hidden.dtype)
        self._inputs = hidden, weight
        self._hidden = Sum(hidden, kept, not is_shared) if wanted[0] else None
        self._weight = Sum(weight, kept, chunks < 2) if wanted[1] else None
        self._bias = BiasSum(weight, kept) if wanted[2] else None

    def add(self, tokens, logits):
        """Takes the gradient of the logits of a slice of the tokens."""
        hidden, weight = self._inputs
        if self._hidden is not None:
            self._hidden.put(tokens, logits, weight)
        if self._weight is not None:
            self._weight.add(logits.t(), hidden[tokens])
        if self._bias is not None:
            self._bias.add(_ALL, logits)

    def finish(self, reduce=None):
        """The gradients that are wanted. ``reduce`` adds up, in place, the processes'
        shares of that of the hidden states."""
        return _finish(self._hidden, self._weight, self._bias, reduce)


class SlabGradients:
    """As `ChunkGradients`, by slabs of classes: that of the weight is one product for
    each class, that of the hidden states a sum over slabs."""

    def __init__(self, hidden, weight, wanted, slabs, is_shared=False):
        kept = kept_type(hidden.dtype)
        is_single = slabs < 2 and not is_shared
        self._inputs = hidden, weight
        self._hidden = Sum(hidden, kept, is_single) if wanted[0] else None
        self._weight = Sum(weight, kept, True) if wanted[1] else None
        self._bias = BiasSum(weight, kept) if wanted[2] else None

    def add(self, classes, logits):
        """Takes the gradient of the logits of a slice of the classes."""
        hidden, weight = self._inputs
        if self._hidden is not None:
            self._hidden.add(logits, weight[classes])
        if self._weight is not None:
            self._weight.put(classes, logits.t(), hidden)
        if self._bias is not None:
            self._bias.add(classes, logits)

    def finish(self, reduce=None):
        return _finish(self._hidden, self._weight, self._bias, reduce)


def _finish(hidden, weight, bias, reduce):
    found = [] if hidden is None else [hidden.finish(reduce)]
    return found + [x.finish() for x in (weight, bias) if x is not None]
