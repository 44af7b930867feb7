"""The architecture, checked on the source: packages import one way, files and functions stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import scaml

PACKAGE = Path(scaml.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# A package imports only from packages above it (DESIGN: data flows one way).
ORDER = [
    "errors",
    "common",
    "tasks",
    "spaces",
    "gp",
    "model",
    "search",
    "methods.base",
    "methods.shared",
    "methods",
    "priors",
    "ask",
    "explain",
    "integrations",
    "sheets",
    "report",
    "bench",
    "cli",
    "testing",
]
LONGEST_FILE, LONGEST_FUNCTION = 400, 60

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: dotted(path) or "scaml")


def dotted(path: Path) -> str:
    """`scaml/methods/base.py` is methods.base, `scaml/methods/__init__.py` is methods."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def place(module: str) -> int:
    """Of the longest entry of ORDER that the module is, or lies in; -1 if there is none."""
    parts = module.split(".")
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((ORDER.index(name) for name in names if name in ORDER), -1)


def imported(tree: ast.AST, module: str, package: bool) -> Iterator[str]:
    """The modules of scaml that a source imports, by dotted name; "" is scaml itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, _, rest = alias.name.partition(".")
                if first == "scaml":
                    yield rest
        elif isinstance(node, ast.ImportFrom):
            base = resolve(node, module, package)
            if base is not None:
                for alias in node.names:
                    inner = f"{base}.{alias.name}".strip(".")
                    yield inner if exists(inner) else base


def resolve(node: ast.ImportFrom, module: str, package: bool) -> str | None:
    """Where a `from ... import` looks, below scaml; None if that is elsewhere."""
    if node.level:
        parts = module.split(".") if module else []
        parts = parts[: len(parts) - node.level + package]
        return ".".join([*parts, *([node.module] if node.module else [])])
    first, _, rest = (node.module or "").partition(".")
    return rest if first == "scaml" else None


def exists(module: str) -> bool:
    path = PACKAGE.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def violations(source: str, module: str, package: bool = False) -> list[str]:
    """Every import that points upwards; `package` for the text of an `__init__`."""
    if module and place(module) < 0:
        return [f"{module} has no place in the order of modules"]
    found = []
    for other in imported(ast.parse(source), module, package):
        inside = other.split(".")[0] == module.split(".")[0]
        if package and (not module or inside):
            continue
        above = (
            place(other) < place(module)
            if place(module) != place(other)
            else free_inside(module, other)
        )
        if place(other) < 0 or not above:
            found.append(f"{module} imports {other or 'scaml'}")
    return found


def free_inside(module: str, other: str) -> bool:
    """Files of one package may share, except methods, each of which stands alone on the base."""
    return place(module) != ORDER.index("methods")


def calls(tree: ast.AST, name: str) -> list[int]:
    """Lines that call `name`, bare or as an attribute."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and name in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
    ]


def long_functions(source: str) -> list[str]:
    return [
        f"{node.name} has {length} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]


# The package.


def test_there_is_something_to_check() -> None:
    assert {"errors", "tasks.task", "methods.base", ""} <= {dotted(path) for path in MODULES}


@each_module
def test_a_module_imports_only_from_modules_above_it(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert not violations(source, dotted(path), package=path.name == "__init__.py")


@each_module
def test_files_and_functions_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= LONGEST_FILE
    assert not long_functions(source)


@each_module
def test_only_the_command_line_prints(path: Path) -> None:
    if dotted(path).split(".")[0] != "cli":
        assert not calls(ast.parse(path.read_text(encoding="utf-8")), "print")


@each_module
def test_no_global_default_type_is_set(path: Path) -> None:
    assert "set_default_dtype" not in path.read_text(encoding="utf-8")


# The checks themselves.


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from scaml.model.fit_theta import Cache", "gp.kernels"),
        ("import scaml.model.fit_theta", "gp.kernels"),
        ("from scaml.model import fit_theta", "gp.kernels"),
        ("from scaml import ScaML", "gp.kernels"),
        ("import scaml", "gp.kernels"),
        ("from ..model import fit_theta", "gp.kernels"),
        ("from ..model.fit_theta import Cache", "gp.kernels"),
        ("def f():\n    from scaml.ask import suggest", "gp.kernels"),
        ("if TYPE_CHECKING:\n    from scaml.ask import suggest", "gp.kernels"),
        ("from scaml.ask import suggest", "methods.base"),
        ("from scaml.methods.scaml import ScaML", "methods.base"),
        ("from scaml.methods.shared.modular import ModularPrior", "methods.base"),
        ("from scaml.methods.scaml import ScaML", "methods.shared.modular"),
        ("from scaml.methods.scaml import ScaML", "methods.gpbo"),
        ("from ..ask import suggest", "methods.gpbo"),
        ("from scaml.methods import ScaML", "search.ucb"),
        ("from scaml.report import page", "explain.run"),
        ("from scaml.sheets import read", "integrations.optuna.sampler"),
        ("from scaml.nowhere import thing", "cli"),
        ("import math", "nowhere"),
        ("import math", "nowhere.inside"),
    ],
)
def test_an_import_that_points_down_is_found(source: str, module: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from scaml.gp.kernels import KernelName", "model.fit_theta"),
        ("from scaml.gp.kernels import KernelName", "gp.likelihood"),
        ("from scaml.methods.base import Method", "methods.gpbo"),
        ("from scaml.methods.shared.modular import ModularPrior", "methods.rgpe"),
        ("from .base import Method", "methods.gpbo"),
        ("from ..gp.map_fit import fit_gps", "methods.gpbo"),
        ("from scaml.methods import ScaML", "ask"),
        ("from scaml.bench.problems import branin", "bench.runner"),
        ("import scamlike\nfrom scamlike import loop\nimport torch.optim", "errors"),
    ],
)
def test_an_import_that_points_up_is_allowed(source: str, module: str) -> None:
    assert not violations(source, module)


def test_a_package_may_import_what_is_its_own() -> None:
    assert not violations("from scaml.cli import main", "", package=True)
    assert not violations("from scaml.methods.gpbo import GPBO", "methods", package=True)
    assert not violations("from .gpbo import GPBO", "methods", package=True)
    assert violations("from scaml.ask import suggest", "methods", package=True)
    assert violations("from ..ask import suggest", "methods", package=True)


def test_prints_and_long_functions_are_found() -> None:
    assert calls(ast.parse("x = 1\nprint(x)"), "print") == [2]
    assert not calls(ast.parse('"""print(x)"""\nblueprint(x)'), "print")
    body = "    x = 1\n" * LONGEST_FUNCTION
    assert long_functions("def f():\n" + body) == ["f has 61 lines"]
    assert long_functions("class A:\n    async def f(self):\n" + body.replace("    ", " " * 8))
    assert not long_functions("def f():\n" + body[len("    x = 1\n") :])


# Names, tests and parameters.

# DESIGN: a name says what is inside without its docstring.
UNCLEAR = {
    "known",
    "learning",
    "likeness",
    "relevance",
    "process",
    "table_rows",
    "campaign",
    "worth",
    "unit",
}
TESTS = Path(__file__).parent
# Types, names or one-line wrappers only, which the tests of their callers cover.
NO_TESTS_OF_THEIR_OWN = {"common.progress"}


@each_module
def test_a_module_has_a_name_that_says_what_is_inside(path: Path) -> None:
    assert not UNCLEAR & set(dotted(path).split("."))


@each_module
def test_a_module_has_its_file_of_tests(path: Path) -> None:
    """gp/kernels.py has tests/gp/test_kernels.py, or several test_kernels_*.py."""
    if path.name in ("__init__.py", "__main__.py") or dotted(path) in NO_TESTS_OF_THEIR_OWN:
        return
    folder = TESTS / path.relative_to(PACKAGE).parent
    names = [f"test_{path.stem}.py", *(file.name for file in folder.glob(f"test_{path.stem}_*.py"))]
    assert any((folder / name).is_file() for name in names), f"no {folder / names[0]}"


def model_classes() -> set[str]:
    """The classes that model/ and methods/ define, protocols aside."""
    names = set()
    for path in MODULES:
        module = dotted(path)
        if module.split(".")[0] in ("model", "methods") and not module.endswith("protocols"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return names


def type_switches(source: str, classes: set[str]) -> list[str]:
    """Calls of isinstance on one of the classes."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", None) == "isinstance"
        and classes & {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
    ]


@each_module
def test_no_type_switches_on_models(path: Path) -> None:
    """Models are asked by protocols, not by their class, unless it is the file's own."""
    if dotted(path).split(".")[0] == "model":
        return
    source = path.read_text(encoding="utf-8")
    own = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)}
    doors = {"Method", "MetaPrior", "ModularMethod"}  # the interfaces themselves
    assert not type_switches(source, model_classes() - doors - own)


def test_type_switches_are_found() -> None:
    source = "if isinstance(model, A | B): pass\nisinstance(x, int)\nisinstance(y, (C, str))"
    assert len(type_switches(source, {"B", "C"})) == 2


MOST_PARAMETERS = 8
# Public keyword-only doors, whose arguments are documented one by one.
WIDE_DOORS = {"ScaMLSampler.__init__"}


def wide_functions(source: str) -> list[str]:
    """Functions with more parameters than allowed, `self` and `cls` aside."""
    found = []
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, ast.Module | ast.ClassDef):
            continue
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given = [a for a in given if a.arg not in ("self", "cls")]
                name = f"{scope.name}.{node.name}" if isinstance(scope, ast.ClassDef) else node.name
                if len(given) > MOST_PARAMETERS and name not in WIDE_DOORS:
                    found.append(f"{name} has {len(given)} parameters")
    return found


@each_module
def test_functions_have_few_parameters(path: Path) -> None:
    assert not wide_functions(path.read_text(encoding="utf-8"))


def test_wide_functions_are_found() -> None:
    names = ", ".join("abcdefghi")
    assert wide_functions(f"def f({names}): pass") == ["f has 9 parameters"]
    assert wide_functions(f"class A:\n    def f(self, *, {names}): pass")
    assert not wide_functions(f"def f({names[:-3]}): pass")
