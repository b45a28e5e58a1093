# Part of Bastile, under the MIT License. See LICENSE.
"""Attention of Transformers' models: masks that nobody waits for, and attention within a
window by PyTorch's flash kernel.

The forward of a decoder enters (`masks.within`); what Transformers calls in it to make
masks, and to attend by PyTorch's `scaled_dot_product_attention`, leaves with less to do.
"""
