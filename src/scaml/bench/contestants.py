"""The methods of a study by name: ours, and those in a user's own file."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from scaml import methods
from scaml.common.wording import nearest
from scaml.errors import ScaMLError, SettingError
from scaml.methods import GPBO, Method, ScaML

__all__ = ["CONTESTANTS", "RANDOM", "Contestant", "contestant"]

RANDOM = "random"
"""Random search: a method without a model."""


@dataclass(frozen=True)
class Contestant:
    """A method and the name that its results go by.

    Args:
        name: As it was asked for.
        method: None for random search.
        settings: Its hyperparameters in words; results of other ones do not mix with its own.
    """

    name: str
    method: Method | None
    settings: str


_OURS: dict[str, Method | None] = {
    "scaml": ScaML(),
    "scaml-ucb": ScaML(acquisition="ucb"),
    "scaml-paper": ScaML.paper(),
    **{
        name.lower(): getattr(methods, name)()
        for name in ("GPBO", "RGPE", "SGPT", "StackGP", "ABLR", "RMGPUCB", "FSBO", "GC3P", "MTGP")
    },
    "gpbo-nei": GPBO(acquisition="lognei"),
    RANDOM: None,
}
CONTESTANTS = tuple(_OURS)
"""The names of our own: `scaml` is the default, `scaml-ucb` the same with the acquisition function that
all others have, `scaml-paper` the setting of the paper."""


def contestant(name: str) -> Contestant:
    """A method by its name.

    Or by what it does otherwise than `scaml-ucb`, as in "kernel=matern52" or
    "kernel=matern52+sqrt-beta=2", or by file and class, as in "./mine.py:Mine".

    Raises:
        SettingError: If there is no such method, with what was probably meant.
    """
    if name in _OURS:
        method = _OURS[name]
        return Contestant(name, method, "random search" if method is None else repr(method))
    if "=" in name and not name.partition(":")[0].endswith(".py"):
        return _choice(name)
    path, colon, cls = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SettingError(
            f"There is no method {name!r}; did you mean {nearest(name, CONTESTANTS)!r}? A method of "
            "your own is named by its file and class, as in ./mine.py:Mine."
        )
    return _from_file(name, Path(path), cls)


def _choice(name: str) -> Contestant:
    from scaml.bench.choices import together

    method = together(name)
    return Contestant(name, method, repr(method))


def _from_file(name: str, path: Path, cls: str) -> Contestant:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise SettingError(
            f"The file {str(path)!r} of method {name!r} cannot be read ({error.strerror}); give the "
            "path of a Python file."
        ) from error
    # The same file is the same module in every process and at every call: its classes can be pickled.
    digest = hashlib.sha256(source).hexdigest()[:12]
    module_name = f"scaml_contestant_{digest}"
    module = sys.modules.get(module_name)
    if module is None:
        spec = spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            raise SettingError(
                f"The file {str(path)!r} of method {name!r} does not run "
                f"({type(error).__name__}: {error}); mend it and try again."
            ) from error
    found = getattr(module, cls, None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        classes = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module_name
        ]
        there = f"but {', '.join(classes)}" if classes else "nor another"
        raise SettingError(
            f"The file {str(path)!r} has no method class {cls!r}, {there}; a method is a subclass of "
            "scaml.methods.Method."
        )
    try:
        method = found()
    except (TypeError, ScaMLError) as error:
        raise SettingError(
            f"{cls} of {str(path)!r} cannot be made without arguments ({error}); give its "
            "hyperparameters default values."
        ) from error
    return Contestant(name, method, f"{method!r}, file {digest}")
