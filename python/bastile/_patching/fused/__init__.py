# Part of Bastile, under the MIT License. See LICENSE.
"""Statements of a forward that become one call of a kernel.

The source of a class's forward enters, and functions that stand for some of its
statements; the forward with these in their place leaves. Everything else in it stays,
whatever a version of Transformers has there.
"""
