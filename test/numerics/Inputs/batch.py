# Part of Bastile, under the MIT License. See LICENSE.
"""Calls random graphs, many in one process, and compares their results with the
reference."""

import json
import os
import tempfile

import numpy as np

import bounded
import floats
import graphs
import limited
from graph import Comparison
from runner import find_tool


class Case:
    """A graph with the values of its arguments."""

    def __init__(self, seed, is_double=False, generate=graphs.generate):
        self.seed = seed
        self.is_double = is_double
        self.graph, self.values = generate(seed, is_double)
        # The text that is compiled: tests of these tests put mistakes into it.
        self.text = self.graph.text()

    def without_rows(self):
        """The values with a size of 0 where one is known only at launch."""
        shapes = {x.name: x for x in self.graph.arguments}
        empty = {}
        for name, array in self.values.items():
            leading = shapes[name].leading or ()
            where = tuple(slice(0, 0 if s is None else None) for s in leading)
            empty[name] = array[where]
        return empty

    def seeds(self, known, is_together):
        """Gradients of the results, exact in their types."""
        random = np.random.default_rng(self.seed)
        seeds = []
        for i, value in enumerate(self.graph.results):
            shape = known[value.name].shape
            numbers = np.round(random.standard_normal(shape) * 64) / 64
            # Beyond, bfloat16 has no such parts.
            numbers = np.clip(numbers, -3.5, 3.5)
            seeds.append(np.full(shape, float(i == 0)) if is_together else numbers)
        return seeds


class Options:
    """How a batch is compiled and run. `gradients` are names of arguments, or
    all; `together` adds them to the function."""

    def __init__(self, target="host", schedule="", gradients=("all",), **others):
        self.request = {
            "target": target,
            "schedule": schedule,
            "gradients": list(gradients),
            **others,
        }

    def asks_for(self, graph):
        """The arguments of a graph whose gradients are wanted."""
        names = [x.name for x in graph.arguments]
        asked = self.request["gradients"]
        return names if asked == ["all"] else [n for n in names if n in asked]


def _save(folder, name, kind, numbers):
    path = os.path.join(folder, name + ".npy")
    np.save(path, floats.encode(kind, numbers))
    return path


class Batch:
    """Some cases, compiled together."""

    def __init__(self, cases, options, empty=()):
        """`empty` are those of `cases` that are called without rows as well."""
        self.cases = cases
        self.options = options
        self.together = bool(options.request.get("together"))
        self.calls = [(case, False) for case in cases]
        self.calls += [(case, True) for case in empty]

    def check(self):
        """A dictionary of what is wrong, by the name of the graph, and how many
        elements there were and were checked."""
        with tempfile.TemporaryDirectory() as folder:
            answer = self.run(folder)
            if isinstance(answer, dict):
                return self._compare(folder, answer)
        if len(self.cases) == 1:
            return {self.cases[0].graph.name: answer}, 0, 0
        problems, count, checked = {}, 0, 0
        empty = {case for case, is_empty in self.calls if is_empty}
        for case in self.cases:
            alone = Batch([case], self.options, [case] if case in empty else [])
            found, all_there, compared = alone.check()
            problems |= found
            count += all_there
            checked += compared
        return problems, count, checked

    def _names(self):
        """The arguments asked for that some function has."""
        asked = self.options.request["gradients"]
        if asked == ["all"]:
            return asked
        there = {x.name for case in self.cases for x in case.graph.arguments}
        return [name for name in asked if name in there]

    def _prepare(self, folder):
        """Evaluates the reference and writes the inputs."""
        requests = []
        self.expected = []
        for case, is_empty in self.calls:
            graph = case.graph
            bounded.compute_in("f64" if case.is_double else "f32")
            values = case.without_rows() if is_empty else case.values
            known = graph.evaluate(values)
            seeds = case.seeds(known, self.together)
            names = self.options.asks_for(graph)
            expected = graph.expected(known, seeds if names else None, names)
            self.expected.append(expected)
            label = graph.name + ("_empty" if is_empty else "")
            inputs = {
                x.name: _save(folder, f"{label}.{x.name}", x.kind, values[x.name])
                for x in graph.arguments
            }
            if names:
                for i, (value, seed) in enumerate(zip(graph.results, seeds)):
                    name = f"grad_result{i}"
                    inputs[name] = _save(folder, f"{label}.{name}", value.kind, seed)
            requests.append({"function": graph.name, "label": label, "inputs": inputs})
        return requests

    def run(self, folder):
        """The messages by call; a string if the calls did not run."""
        source = os.path.join(folder, "source.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write("".join(case.text for case in self.cases))
        request = {
            **self.options.request,
            "source": source,
            "folder": folder,
            "gradients": self._names(),
            "calls": self._prepare(folder),
        }
        tool = os.path.join(os.path.dirname(find_tool()), "call-batch")
        done = limited.run(
            [tool], json.dumps(request), limited.seconds() * len(self.cases)
        )
        if done is None:
            return f"takes more than {limited.seconds()} s"
        if done.returncode == 0:
            return json.loads(done.stdout)
        if done.returncode < 0:
            return f"crashes by signal {-done.returncode}: {done.stderr[-600:]}"
        return "refused: " + done.stderr[:1000]

    def _compare(self, folder, messages):
        problems, count, checked = {}, 0, 0
        for (case, is_empty), expected in zip(self.calls, self.expected):
            label = case.graph.name + ("_empty" if is_empty else "")
            if messages[label]:
                problems[label] = messages[label]
                continue
            kinds = case.graph.kinds()
            wrong = []
            for name, numbers in expected.items():
                path = os.path.join(folder, f"{label}.{name}.npy")
                if not os.path.exists(path):
                    # A gradient that is not written must be zero in the reference.
                    if numbers.value.any() or name.startswith("result"):
                        wrong.append(f"{name} is not returned")
                    continue
                got = floats.decode(kinds[name], np.load(path))
                if got.shape != numbers.shape:
                    wrong.append(f"{name} has shape {got.shape}")
                    continue
                result = Comparison(kinds[name], got, numbers)
                count += result.count
                checked += result.checked
                if result.message:
                    wrong.append(f"{name}: {result.message}")
            if wrong:
                problems[label] = "\n  ".join(wrong)
        return problems, count, checked
