# Part of Bastile, under the MIT License. See LICENSE.
"""Losses of preferences and rewards.

Log-probabilities of tokens enter, those of the model and of a reference; a loss and the
numbers that trainers log leave. How log-probabilities are made of hidden states belongs
to the room around this one.
"""
