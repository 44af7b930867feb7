"""A space as a TOML file to edit by hand: one table per parameter.

Reading returns exactly the space that was written. TOML has no None: among the values of a choice, the
empty table `{}` stands for None.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml.common.files import replacing
from scaml.common.wording import nearest
from scaml.errors import SavedFileError, SpaceError
from scaml.spaces.space import Space

__all__ = ["as_toml", "read", "write"]

_HEADER = """\
# The parameters of the new task, one table each. Delete a table to leave its parameter out.
#   type = "float" or "int": from low to high; log = true for a logarithmic scale;
#                            step = 0.5, or 2, for a grid that begins at low.
#   type = "choice":         one of values, such as ["a", "b", 3, true].
# Put a name with other characters than A-Z a-z 0-9 _ - in quotation marks: ["max. speed"].
"""
_KEYS = {
    "float": ("type", "low", "high", "log", "step"),
    "int": ("type", "low", "high", "log", "step"),
    "choice": ("type", "values"),
}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def as_toml(space: Space) -> str:
    """The text of a file that describes a space."""
    parts = [_HEADER, *(_table(name, value) for name, value in space.distributions.items())]
    return "\n".join(parts)


def write(space: Space, path: str | os.PathLike[str]) -> None:
    """Write a space to a file, completely or not at all; an older file is replaced."""
    target, text = Path(path), as_toml(space)
    try:
        with replacing(target) as draft:
            draft.write_bytes(text.encode())
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        why = error.strerror if isinstance(error, OSError) else error
        raise SavedFileError(f"{target} cannot be written: {why}; choose another path.") from error


def read(path: str | os.PathLike[str]) -> Space:
    """The space that a file describes."""
    source = Path(path)
    try:
        tables = tomllib.loads(source.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise SavedFileError(
            f"{source} cannot be read: {error.strerror}; give the path of a file that "
            "describes a space."
        ) from error
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{source} is not TOML ({error}); correct the file.") from error
    if not tables:
        raise SpaceError(
            f"{source} has no parameter; write one table per parameter, such as [temperature]."
        )
    return Space({name: _distribution(name, table) for name, table in tables.items()})


def _table(name: str, distribution: BaseDistribution) -> str:
    """The lines of one parameter."""
    lines: dict[str, str] = {}
    if isinstance(distribution, CategoricalDistribution):
        values = (_value(name, choice) for choice in distribution.choices)
        lines = {"type": '"choice"', "values": f"[{', '.join(values)}]"}
    else:
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        whole = isinstance(distribution, IntDistribution)
        lines = {"type": '"int"' if whole else '"float"'}
        lines |= {key: _value(name, getattr(distribution, key)) for key in ("low", "high", "log")}
        if distribution.step is not None and not (whole and distribution.step == 1):
            lines["step"] = _value(name, distribution.step)
    key = name if _BARE.fullmatch(name) else _string(name, name)
    return "\n".join([f"[{key}]", *(f"{key} = {value}" for key, value in lines.items()), ""])


def _value(name: str, value: Any) -> str:
    if value is None:
        return "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(name, value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    raise SpaceError(
        f"Parameter {name!r} has the choice {value!r}, which TOML cannot represent; use strings, "
        "numbers, true and false."
    )


def _string(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SpaceError(
            f"Parameter {name!r} has {text!r}, which is not valid Unicode; use other characters."
        ) from error
    return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', _escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], f"\\u{ord(match[0]):04x}")


def _distribution(name: str, table: Any) -> BaseDistribution:
    """The parameter that a table describes; errors name the parameter and the key."""
    if not isinstance(table, dict):
        raise SpaceError(f"{name!r} is {table!r}; write a table [{name}] with type, low and high.")
    nested = next((key for key, value in table.items() if isinstance(value, dict)), None)
    if nested is not None:
        raise SpaceError(
            f"Parameter {name!r} has a table {nested!r}; put a name with a dot in quotation marks, "
            f'["{name}.{nested}"].'
        )
    kind = _get(name, table, "type")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise SpaceError(
            f'Parameter {name!r}: type is {kind!r}; give "float", "int" or "choice", perhaps '
            f'"{nearest(str(kind), _KEYS)}".'
        )
    keys = _KEYS[kind]
    for key in table:
        if key not in keys:
            raise SpaceError(
                f"Parameter {name!r} has no key {key!r}; a {kind} has {', '.join(keys)}, so perhaps "
                f"{nearest(key, keys)!r} was meant."
            )
    return _choice(name, table) if kind == "choice" else _number(name, table, kind == "int")


def _number(name: str, table: Mapping[str, Any], whole: bool) -> BaseDistribution:
    low, high = (_finite(name, key, _get(name, table, key), whole) for key in ("low", "high"))
    if low > high:
        raise SpaceError(f"Parameter {name!r}: low is {low!r}, but high is only {high!r}; swap them.")
    log = table.get("log", False)
    if not isinstance(log, bool):
        raise SpaceError(f"Parameter {name!r}: log is {log!r}; give true or false.")
    step = _finite(name, "step", table["step"], whole) if "step" in table else None
    if step is not None and step <= 0:
        raise SpaceError(f"Parameter {name!r}: step is {step!r}; give a positive number.")
    if log and (low <= 0 or (whole and low < 1)):
        raise SpaceError(
            f"Parameter {name!r}: low is {low!r} on a logarithmic scale; give a positive low, or "
            "log = false."
        )
    if log and step is not None and not (whole and step == 1):
        raise SpaceError(
            f"Parameter {name!r}: step is {step!r} on a logarithmic scale; leave out step, or log."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Optuna would move the high end, with a warning
        try:
            if whole:
                return IntDistribution(low, high, log=log, step=1 if step is None else step)
            return FloatDistribution(low, high, log=log, step=step)
        except UserWarning as error:
            raise SpaceError(
                f"Parameter {name!r}: high is {high!r}, which steps of {step!r} from {low!r} do not "
                "reach exactly; change high or step."
            ) from error


def _finite(name: str, key: str, value: Any, whole: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        what = "a whole number" if whole else "a number"
        raise SpaceError(f"Parameter {name!r}: {key} is {value!r}; give {what}.")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise SpaceError(f"Parameter {name!r}: {key} is {value!r}; give a finite number.")
    return value if whole else float(value)


def _choice(name: str, table: Mapping[str, Any]) -> BaseDistribution:
    values = _get(name, table, "values")
    if not isinstance(values, list) or not values:
        raise SpaceError(f'Parameter {name!r}: values is {values!r}; give a list, such as ["a", "b"].')
    choices = [None if value == {} else value for value in values]
    seen: set[tuple[type, Any]] = set()
    for choice in choices:
        if not isinstance(choice, str | int | float | None):
            raise SpaceError(
                f"Parameter {name!r}: values has {choice!r}; give strings, numbers, true and false."
            )
        if (type(choice), choice) in seen:
            raise SpaceError(f"Parameter {name!r}: values has {choice!r} twice; delete one of them.")
        seen.add((type(choice), choice))
    return CategoricalDistribution(choices)


def _get(name: str, table: Mapping[str, Any], key: str) -> Any:
    """The value of a required key."""
    if key not in table:
        close = get_close_matches(key, table, n=1)
        what = f"rename {close[0]!r}" if close else f"add a line {key} = ..."
        raise SpaceError(f"Parameter {name!r} has no key {key!r}; {what}.")
    return table[key]
