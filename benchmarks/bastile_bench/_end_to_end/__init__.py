# Part of Bastile, under the MIT License. See LICENSE.
"""What ``train``, ``generate`` and ``profile`` measure whole models with."""
