# Part of Bastile, under the MIT License. See LICENSE.
"""Whether another project's files lie among those of this package.

The distribution is ``bastile-mlir``. ``bastile`` on the package index is somebody
else's, and installs a package of the same name: where both are in one folder, the one
that came last has overwritten files of the other.
"""

import os


def check(folder: str) -> None:
    """Raises ``ImportError`` where a distribution ``bastile`` is installed into
    ``folder``, which holds this package. Looks at nothing but names of files, as
    reading what is installed would take longer than the import does."""
    try:
        names = os.listdir(folder)
    except OSError:
        # In an archive, or not to be read: nothing is known.
        return
    for name in names:
        if name.startswith("bastile-") and name.endswith((".dist-info", ".egg-info")):
            raise ImportError(
                f"the distribution 'bastile' ({name} in {folder}) is another "
                "project's, and its files and those of 'bastile-mlir' overwrite one "
                "another: pip uninstall bastile bastile-mlir, and then install "
                "bastile-mlir again"
            )


check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
