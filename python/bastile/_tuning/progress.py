# Part of Bastile, under the MIT License. See LICENSE.
"""What a user sees of work that takes over a second."""

import sys
import time


class Progress:
    """Counts steps on the standard error, once a second has passed."""

    DELAY = 1.0

    def __init__(self, what, total, clock=time.monotonic, stream=None):
        self._stream = stream or sys.stderr
        self._clock = clock
        self._start = clock()
        self._what = what
        self._total = total
        self._done = 0
        self._bar = None
        self._written = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()
        elif self._written:
            self._stream.write("\n")
            self._stream.flush()

    def add(self, count):
        """There is more to do than was known."""
        self._total += count

    def step(self, what=None, count=1):
        self._done += count
        self._what = what or self._what
        if self._clock() - self._start < self.DELAY:
            return
        bar = self._tqdm()
        if bar is not None:
            bar.total = self._total
            bar.set_description(self._what, refresh=False)
            bar.update(self._done - bar.n)
            return
        self._written = True
        self._stream.write(f"\r{self._what}: {self._done}/{self._total}\x1b[K")
        self._stream.flush()

    def _tqdm(self):
        if self._bar is None and not self._written:
            try:
                from tqdm import tqdm
            except ImportError:
                return None
            self._bar = tqdm(total=self._total, file=self._stream, leave=False)
        return self._bar
