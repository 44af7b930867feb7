"""The options of a command as one frozen dataclass instead of a long list of parameters.

Each field has the type that Typer reads, `Annotated` with the option, and a default value. A field of a
subclass comes after those of its base class, unless its metadata says `{"after": "name"}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

__all__ = ["takes"]

Options = TypeVar("Options")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn a function of one options object into a Typer command with one parameter per field.

    Args:
        options: The dataclass.
    """
    hints = get_type_hints(options, include_extras=True)
    signature = Signature(
        [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in _in_order(options)
        ]
    )

    def decorate(function: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(function)
        def command(**values: Any) -> None:
            function(options(**values))

        command.__annotations__ = {name: hints[name] for name in signature.parameters}
        vars(command)["__signature__"] = signature  # what Typer reads
        return command

    return decorate


def _in_order(options: Any) -> list[Field[Any]]:
    """The fields in the order of the help."""
    ordered: list[Field[Any]] = []
    for field in fields(options):
        names = [other.name for other in ordered]
        after = field.metadata.get("after")
        ordered.insert(names.index(after) + 1 if after else len(ordered), field)
    return ordered
