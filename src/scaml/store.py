"""Files of fitted meta-priors: tensors in safetensors with a versioned JSON header, no pickle anywhere.

Reading maps the file into memory and trusts nothing in it: whatever is wrong with a file ends in one
`StoreError` that names it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from scaml.errors import StoreError

__all__ = ["FORMAT", "read", "write"]

FORMAT = 1
_KEY = "scaml"
_LONGEST_HEADER = 100_000_000


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a file at once or not at all.

    Args:
        path: Where to; an older file there is replaced.
        header: What JSON can carry.
        tensors: Named tensors.
    """
    target = Path(path)
    text = json.dumps({"format": FORMAT, **header})
    copies = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    try:
        # In the same folder, so that the last step is one rename: readers see the old file or the new.
        handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror}; choose another place."
        ) from error
    os.close(handle)
    try:
        save_file(copies, draft, metadata={_KEY: text})
        Path(draft).replace(target)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"{target} cannot be written: {error}; choose another place.") from error
    finally:
        Path(draft).unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file that `write` wrote."""
    source = Path(path)
    if not source.is_file():
        raise StoreError(f"{source} is not a file; give the path of a saved prior.")
    try:
        with safe_open(source, framework="pt") as file:
            metadata = file.metadata() or {}
            header = _header(source, metadata)
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise StoreError(
            f"{source} is damaged or not a saved prior ({error}); save the prior again."
        ) from error


def _header(source: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    text = metadata.get(_KEY)
    if text is None or len(text) > _LONGEST_HEADER:
        raise StoreError(f"{source} was not written by scaml; give a file that prior.save wrote.")
    try:
        header: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{source} has a damaged header; save the prior again.") from error
    version = header.get("format") if isinstance(header, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StoreError(f"{source} has a header without a format; give a file that prior.save wrote.")
    if version > FORMAT:
        raise StoreError(
            f"{source} has format {version}, but this scaml reads formats up to {FORMAT}; update scaml."
        )
    return header
