# Part of Bastile, under the MIT License. See LICENSE.
"""Log-probabilities of targets, and what else there is to say of a token's softmax.

One formula makes statistics of some tokens' logits of some classes. Those of all classes
follow from those of parts of them, whether these are slabs or other processes' slices.
"""
