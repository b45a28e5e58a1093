# Part of Bastile, under the MIT License. See LICENSE.
"""``python -m ...worker FOLDER``: one job, in a process of its own.

Reads ``job.json`` and appends lines of JSON to ``said``: ``{"stage": ...}`` as it
goes, and what a `bastile_bench._end_to_end.jobs.Outcome` is made of at the end.
"""

import importlib
import json
import os
import pathlib
import sys
import traceback

from bastile_bench._end_to_end import jobs, providers

_TASKS = {
    "train": "bastile_bench._end_to_end.train_task",
    "generate": "bastile_bench._end_to_end.generate_task",
    "grpo": "bastile_bench._end_to_end.grpo_task",
    "profile": "bastile_bench._end_to_end.profile_task",
}


def work(job: dict, say) -> dict:
    """Does a job and returns its outcome; ``say(stage)`` tells how far it is."""
    try:
        task = importlib.import_module(_TASKS[job["task"]])
        return {"status": jobs.MEASURED, "values": task.measure(job, say)}
    except providers.Unavailable as reason:
        return {"status": jobs.LEFT_OUT, "values": {}, "message": str(reason)}
    except Exception as error:
        text = " ".join(str(error).split())
        return {
            "status": jobs.FAILED,
            "values": {},
            "message": f"{type(error).__name__}: {text[:300]}",
            "details": traceback.format_exc()[-4000:],
        }


def main(folder: pathlib.Path) -> None:
    # Nothing here needs the hub, and a look-up would hang where there is none.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with open(folder / "said", "a", buffering=1) as said:

        def write(line):
            said.write(json.dumps(line) + "\n")

        job = json.loads((folder / "job.json").read_text())
        write(work(job, lambda stage: write({"stage": stage})))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
