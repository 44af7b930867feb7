"""The methods of a comparison by name: those of scaml, and those in a user's own file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from scaml.common.wording import nearest
from scaml.errors import ScaMLError, SettingError
from scaml.methods import Method
from scaml.methods.by_name import METHOD_NAMES, method_named

__all__ = ["COMPARED", "CONTESTANTS", "RANDOM", "Contestant", "contestant"]

RANDOM = "random"
"""The name of random search, which has no model."""


@dataclass(frozen=True)
class Contestant:
    """A method, and the name under which its results are stored.

    Worker processes get contestants by pickle, so the class of the method must be importable there.

    Args:
        name: The name in results, tables and figures.
        method: The method, or None for random search.
        settings: The hyperparameters of the method as text. Results are stored with this text, and
            results that were made with other settings are never continued.
    """

    name: str
    method: Method | None
    settings: str


CONTESTANTS = (*METHOD_NAMES, RANDOM)
"""The names of scaml's own methods.

`scaml` is the default; `scaml-explained` averages over explanations; `scaml-shared` is the former
default, with the squared-exponential kernel, and
`scaml-ucb` the same with UCB, the acquisition function of all compared methods; `scaml-paper` is the
setting of the paper; `gpbo-nei` is a plain GP with the default's acquisition function, and
`gpbo-nei-matern52` the same with a Matérn kernel.
"""
_ON_REQUEST = (RANDOM, "scaml-shared", "scaml-explained", "gpbo-nei", "gpbo-nei-matern52")
COMPARED = tuple(name for name in CONTESTANTS if name not in _ON_REQUEST)
"""The methods of a comparison by default: ScaML-GP in three settings, and all methods of the paper."""


def contestant(name: str) -> Contestant:
    """Find a method by its name, or by file and class, as in "./mine.py:Mine".

    Raises:
        SettingError: If there is no such method. The message names the most similar one.
    """
    if name == RANDOM:
        return Contestant(name, None, "random search")
    if name in METHOD_NAMES:
        method = method_named(name)
        return Contestant(name, method, repr(method))
    path, colon, cls = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SettingError(
            f"There is no method {name!r}; did you mean {nearest(name, CONTESTANTS)!r}? A method of "
            "your own is named by its file and class, as in ./mine.py:Mine."
        )
    file = Path(path).resolve()
    try:
        source = file.read_bytes()
    except OSError as error:
        raise SettingError(
            f"The file {str(Path(path))!r} of method {name!r} cannot be read ({error.strerror}); give "
            "the path of a Python file."
        ) from error
    return _from_file(name, file, cls, source)


@dataclass(frozen=True)
class _FileContestant(Contestant):
    """A method from a user's file, which takes the text of the file along to other processes.

    Args:
        path: The file.
        cls: The name of the class in the file.
        source: The text of the file. A file that is edited during the runs does not change them.
    """

    path: Path
    cls: str
    source: bytes = field(repr=False)

    def __reduce__(self) -> tuple[Callable[..., Contestant], tuple[str, Path, str, bytes]]:
        return _from_file, (self.name, self.path, self.cls, self.source)


def _from_file(name: str, path: Path, cls: str, source: bytes) -> Contestant:
    # The same text has the same module name in every process, so its classes can be pickled.
    digest = hashlib.sha256(source).hexdigest()[:12]
    module = _module(name, path, source, f"scaml_contestant_{digest}")
    found = getattr(module, cls, None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        classes = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Method)
            and value.__module__ == module.__name__
        ]
        there = f"but {', '.join(classes)}" if classes else "nor another"
        raise SettingError(
            f"The file {path.name!r} has no method class {cls!r}, {there}; a method is a subclass of "
            "scaml.methods.Method."
        )
    try:
        method = found()
    except (TypeError, ScaMLError) as error:
        raise SettingError(
            f"{cls} of {path.name!r} cannot be made without arguments ({error}); give its "
            "hyperparameters default values."
        ) from error
    return _FileContestant(name, method, f"{method!r}, file {digest}", path, cls, source)


def _module(name: str, path: Path, source: bytes, module_name: str) -> ModuleType:
    known = sys.modules.get(module_name)
    if known is not None:
        return known
    module = ModuleType(module_name)
    module.__file__ = str(path)
    sys.modules[module_name] = module
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        del sys.modules[module_name]
        raise SettingError(
            f"The file {path.name!r} of method {name!r} does not run "
            f"({type(error).__name__}: {error}); correct it and try again."
        ) from error
    return module
