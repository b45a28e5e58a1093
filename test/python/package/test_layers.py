# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Rooms of the package import what lies below them, and no modules form a circle."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "python" / "bastile"

#: Rooms and public modules from the bottom up. Each may import those before it, and
#: modules of a room one another. An import inside of a function counts as well: where
#: an upper room has to be called, it registers itself with the lower one.
ORDER = (
    "_bastile",
    "_installation",
    "_log",
    "_compiler",
    "_tuning",
    "functions",
    "_formulas",
    "_torch",
    "_losses",
    "_attention",
    "_optim",
    "ops",
    "losses",
    "functional",
    "nn",
    "optim",
    "_patching",
    "patching",
    "trainer",
    "bastile",
    "_commands",
    "__main__",
)
#: A folder with more is one that nobody finds anything in.
MOST_FILES = 25


def read_modules(package):
    """The syntax tree of each module, by its dotted name below the package; that of the
    package itself by the package's."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        modules[".".join(parts) or package.name] = ast.parse(path.read_text())
    # The extension module has no source here.
    modules["_bastile"] = ast.parse("")
    return modules


def find_imports(name, tree, modules, package):
    """What a module imports of its package, by dotted names below it. That an import of
    a module runs the packages around it first is left out."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            full = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: a relative import hides what it imports"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            # A name is a module, or lies in the one that it is imported from.
            full = [x if below(x, package) in modules else node.module for x in inner]
        elif isinstance(node, ast.Call) and called(node) in (
            "import_module",
            "__import__",
        ):
            full = named_by(node.args[0], package)
        else:
            continue
        for target in full:
            if target.split(".")[0] == package:
                assert below(target, package) in modules, f"{name}: {target} is missing"
                found.add(below(target, package))
    return found


def below(full, package):
    return full.removeprefix(f"{package}.")


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def named_by(argument, package):
    """What a call of `import_module` imports by a name that begins with the package's."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    text = argument.value if isinstance(argument, ast.Constant) else ""
    # Where the rest of a name is computed, it may be any module: only the package itself
    # is above all.
    return [package if text.endswith(".") else text]


def room(module):
    return module.split(".")[0]


def check_order(modules, package="bastile", order=ORDER):
    """What is imported against the order of the rooms, one line for each."""
    wrong = []
    for name, tree in modules.items():
        for target in sorted(find_imports(name, tree, modules, package)):
            if name == target == package:
                continue
            if order.index(room(target)) > order.index(room(name)):
                wrong.append(f"{name} imports {target}, which is above it")
    return wrong


def find_circles(modules, package="bastile"):
    """Groups of modules that import each other, directly or through others."""
    edges = {
        name: find_imports(name, tree, modules, package) - {package}
        for name, tree in modules.items()
    }

    def reach(start):
        seen, left = set(), [start]
        while left:
            for target in edges[left.pop()] - seen:
                seen.add(target)
                left.append(target)
        return seen

    reached = {name: reach(name) for name in modules}
    return {
        frozenset({name} | {x for x in reached[name] if name in reached[x]})
        for name in modules
        if name in reached[name]
    }


@pytest.fixture(scope="module")
def modules():
    return read_modules(PACKAGE)


def test_rooms_import_what_lies_below(modules):
    assert {room(name) for name in modules} == set(ORDER)
    assert check_order(modules) == []


def test_no_modules_form_a_circle(modules):
    assert find_circles(modules) == set()


@pytest.mark.parametrize(
    "statement",
    [
        "from bastile._patching import table",
        "import bastile.ops",
        "from bastile import functional as F",
        "from bastile.patching import apply",
        "def f():\n    from bastile._torch import dispatch",
        "if TYPE_CHECKING:\n    from bastile import nn",
        "import importlib\nimportlib.import_module('bastile.ops')",
        "import importlib\nimportlib.import_module(f'bastile.{name}')",
    ],
)
def test_an_import_upwards_is_found(modules, statement):
    lower = {**modules, "_compiler.loading": ast.parse(statement)}
    (wrong,) = check_order(lower)
    assert wrong.startswith("_compiler.loading imports ")


def test_a_circle_in_a_room_is_found(modules):
    text = "def f():\n    from bastile._compiler.kernel import Kernel"
    inner = {**modules, "_compiler.loading": ast.parse(text)}
    assert check_order(inner) == []
    (circle,) = find_circles(inner)
    assert {"_compiler.loading", "_compiler.kernel"} <= circle


def test_folders_are_small_and_rooms_say_what_they_are_for(modules):
    for folder in [PACKAGE, *(x for x in PACKAGE.rglob("*") if x.is_dir())]:
        files = [x for x in folder.iterdir() if x.is_file() and x.suffix != ".pyc"]
        assert len(files) <= MOST_FILES, folder
    for name in ORDER:
        if (PACKAGE / name / "__init__.py").exists():
            assert len(ast.get_docstring(modules[name]).split()) > 20, name
