# Part of Bastile, under the MIT License. See LICENSE.
"""The progress of measurements: a bar where `tqdm` is installed, else a count."""

from bastile._tuning import progress


class Progress(progress.Progress):
    """The progress of the tuner, with texts printed beside it."""

    def print(self, text: str) -> None:
        """Prints a text on the standard output, above the bar."""
        if self._bar is not None:
            self._bar.clear()
        elif self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        print(text, flush=True)
        if self._bar is not None:
            self._bar.refresh()
