# Part of Bastile, under the MIT License. See LICENSE.

import os

import lit.formats

build = lit_config.params.get(
    "build",
    os.environ.get(
        "BASTILE_BUILD",
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build"),
    ),
)

# lit looks for Google Test binaries in the source folder of the suite.
config.name = "Bastile-Unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.test_source_root = os.path.join(os.path.abspath(build), "test", "unit")
config.test_exec_root = config.test_source_root
