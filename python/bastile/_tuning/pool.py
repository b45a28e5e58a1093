# Part of Bastile, under the MIT License. See LICENSE.
"""Threads that compile ahead."""

import concurrent.futures
import threading


class Pool:
    """Runs functions in up to ``workers`` threads; where the process can have
    fewer, in those, and where it can have none, in the caller's.

    (``ThreadPoolExecutor`` alone raises RuntimeError then, and may or may not
    run what it was given.)
    """

    def __init__(self, workers: int):
        self._executor = concurrent.futures.ThreadPoolExecutor(workers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()

    def submit(self, function, *arguments) -> concurrent.futures.Future:
        task = _Task(function, arguments)
        try:
            self._executor.submit(task.run)
        except RuntimeError:
            # An earlier thread may have got hold of it all the same.
            task.run()
        return task.future

    def shutdown(self) -> None:
        """Waits for what is running, and starts nothing more."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class _Task:
    def __init__(self, function, arguments):
        self.future = concurrent.futures.Future()
        self._function, self._arguments = function, arguments
        self._claim = threading.Lock()

    def run(self):
        """Runs the function, unless that was done or is being done."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            result = self._function(*self._arguments)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
