# Part of Bastile, under the MIT License. See LICENSE.
"""Lets the tests import what they share: lit runs every other .py as a test."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
