# Part of Bastile, under the MIT License. See LICENSE.
"""A format of lit's tests that starts none after a deadline.

lit's own --max-time does not end a run: it waits so long for each next result.
"""

import time

import lit.Test
from lit.formats import ShTest


class ShTestUntil(ShTest):
    """Tests of shell commands, skipped from `deadline` on (seconds since the epoch)."""

    def __init__(self, deadline: float):
        super().__init__(execute_external=False)
        self.deadline = deadline

    def execute(self, test, lit_config):
        if time.time() > self.deadline:
            return lit.Test.Result(lit.Test.SKIPPED, "no time was left")
        return super().execute(test, lit_config)
