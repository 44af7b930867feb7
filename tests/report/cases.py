"""What several tests of figures use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def strings(figure: Any) -> Iterator[str]:
    """Every text of a figure."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for inner in value.values():
                yield from walk(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner)

    yield from walk(json.loads(figure.to_json()))
