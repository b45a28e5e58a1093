"""Measurements of Bastile beside other libraries: ``python -m bastile.bench``.

Every module whose name begins with a letter is a command. Its docstring's first
line is the command's summary; ``add_arguments(parser)`` adds its options and
``run(arguments)`` returns the exit status. What ``run`` raises as an ``OSError``, a
``RuntimeError``, a ``ValueError`` or an ``ImportError`` is printed in one line.
"""
