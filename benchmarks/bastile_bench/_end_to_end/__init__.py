"""What ``train``, ``generate`` and ``profile`` measure whole models with."""
