"""Files of fitted meta-priors: tensors in safetensors with a versioned JSON header, never pickle.

Reading maps the file into memory and validates everything in it. Whatever is wrong with a file, the
reader gets one `SavedFileError` that names the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from scaml.common.files import replacing
from scaml.errors import SavedFileError

__all__ = ["FORMAT", "read", "write"]

FORMAT = 1
_KEY = "scaml"
_TOKEN = "token"
_TRIES = 20
_LONGEST_HEADER = 100_000_000


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a file completely or not at all.

    Args:
        path: The file to write; an older file is replaced.
        header: Values that JSON can represent.
        tensors: Named tensors.
    """
    target = Path(path)
    copies = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    # Header and tensors carry the same token, so that a reader knows that both are of one file.
    digest = hashlib.sha256(json.dumps(header).encode())
    for tensor in copies.values():
        digest.update(tensor.numpy().tobytes())
    token = int(digest.hexdigest()[:15], 16)
    copies[_TOKEN] = torch.tensor([token])
    text = json.dumps({"format": FORMAT, _TOKEN: token, **header})
    try:
        with replacing(target) as draft:
            draft.write_bytes(save(copies, metadata={_KEY: text}))
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise SavedFileError(f"{target} cannot be written: {why}; choose another path.") from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a file written by `write`."""
    source = Path(path)
    if not source.is_file():
        raise SavedFileError(f"{source} is not a file; give the path of a saved prior.")
    for _ in range(_TRIES):
        header, tensors = _read(source)
        token = tensors.pop(_TOKEN, None)
        # `safe_open` opens the path twice; another process may replace the file between the two.
        if token is None or token.tolist() == [header.pop(_TOKEN, None)]:
            return header, tensors
    raise SavedFileError(
        f"{source} was replaced while it was read, {_TRIES} times; try again when no process writes it."
    )


def _read(source: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(source, framework="pt") as file:
            header = _header(source, file.metadata() or {})
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise SavedFileError(
            f"{source} is damaged or not a saved prior ({error}); save the prior again."
        ) from error


def _header(source: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    text = metadata.get(_KEY)
    if text is None or len(text) > _LONGEST_HEADER:
        raise SavedFileError(f"{source} was not written by scaml; give a file that prior.save wrote.")
    try:
        header: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SavedFileError(f"{source} has a damaged header; save the prior again.") from error
    version = header.get("format") if isinstance(header, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SavedFileError(
            f"{source} has a header without a format; give a file that prior.save wrote."
        )
    if version > FORMAT:
        raise SavedFileError(
            f"{source} has format {version}, but this scaml reads formats up to {FORMAT}; update scaml."
        )
    return header
