"""Files: written at once or not at all, and read with no trust in what they hold."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from scaml.common.tensor_file import FORMAT, read, write
from scaml.errors import SavedFileError

TENSORS = {
    "a": torch.arange(6, dtype=torch.float64).view(2, 3),
    "b/c": torch.tensor([True, False]),
    "none": torch.empty(3, 0, dtype=torch.float64),
    "scalar": torch.tensor(2.5, dtype=torch.float64),
}
HEADER = {"names": ["x", "ü"], "deep": {"settings": [1, None, 0.1]}}


@contextmanager
def named(path: Path, words: str | None = None) -> Iterator[None]:
    """A SavedFileError inside, of one sentence that names the file."""
    with pytest.raises(SavedFileError, match=words) as info:
        yield
    text = str(info.value)
    assert str(path) in text
    assert "\n" not in text
    assert text.endswith(".")


def listing(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def foreign(path: Path, header: Any, tensors: dict[str, Tensor] | None = None) -> Path:
    """A safetensors file whose header is any text."""
    text = header if isinstance(header, str) else json.dumps(header)
    save_file(TENSORS if tensors is None else tensors, path, metadata={"scaml": text})
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path / "p", HEADER, TENSORS)
    header, tensors = read(tmp_path / "p")
    assert header == {"format": FORMAT, **HEADER}
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype
    assert listing(tmp_path) == ["p"]


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    write(str(tmp_path / "p"), {}, {})
    assert read(str(tmp_path / "p")) == ({"format": FORMAT}, {})


def test_views_and_shared_memory_and_gradients_are_written_as_they_look(tmp_path: Path) -> None:
    base = torch.arange(12, dtype=torch.float64).view(3, 4).requires_grad_()
    write(tmp_path / "p", {}, {"t": base.mT, "column": base[:, 1], "again": base})
    _, tensors = read(tmp_path / "p")
    assert torch.equal(tensors["t"], base.detach().mT)
    assert torch.equal(tensors["column"], base.detach()[:, 1])
    assert torch.equal(tensors["again"], base.detach())


def test_special_numbers_keep_their_bits(tmp_path: Path) -> None:
    values = torch.tensor([0.0, -0.0, 5e-324, torch.inf, -torch.inf, torch.nan, 0.1]).double()
    write(tmp_path / "p", {}, {"x": values})
    read_back = read(tmp_path / "p")[1]["x"]
    assert torch.equal(read_back.view(torch.int64), values.view(torch.int64))


def test_what_was_read_outlives_the_file(tmp_path: Path) -> None:
    write(tmp_path / "p", {}, TENSORS)
    _, tensors = read(tmp_path / "p")
    write(tmp_path / "p", {}, {"a": torch.zeros(2, 3, dtype=torch.float64)})
    (tmp_path / "p").unlink()
    assert torch.equal(tensors["a"], TENSORS["a"])
    tensors["a"][0, 0] = 7.0  # a copy of its own, or a private mapping


def test_writing_replaces_an_older_file(tmp_path: Path) -> None:
    write(tmp_path / "p", {"age": "old"}, TENSORS)
    write(tmp_path / "p", {"age": "new"}, {})
    assert read(tmp_path / "p") == ({"format": FORMAT, "age": "new"}, {})
    assert listing(tmp_path) == ["p"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_an_older_file_survives_a_write_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    write(tmp_path / "p", {"age": "old"}, TENSORS)
    before = (tmp_path / "p").read_bytes()

    def fails(*_: Any) -> None:
        raise error

    # The last step of all: whatever was written by then must go.
    monkeypatch.setattr(Path, "replace", fails)
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(SavedFileError if isinstance(error, OSError) else KeyboardInterrupt) as info:
        write(tmp_path / "p", {"age": "new"}, TENSORS)
    assert not isinstance(info.value, SavedFileError) or "disk full" in str(info.value)
    assert (tmp_path / "p").read_bytes() == before
    assert listing(tmp_path) == ["p"]


def test_a_header_that_json_cannot_carry_leaves_no_trace(tmp_path: Path) -> None:
    with pytest.raises((TypeError, SavedFileError)):
        write(tmp_path / "p", {"settings": {"f": object()}}, TENSORS)
    assert listing(tmp_path) == []


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with named(tmp_path / "p"):
        write(tmp_path / "p", {}, TENSORS)
    assert listing(tmp_path) == ["p"]
    assert (tmp_path / "p").is_dir()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with named(tmp_path / "no" / "p"):
        write(tmp_path / "no" / "p", {}, TENSORS)
    assert listing(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with named(tmp_path / "file" / "p"):
        write(tmp_path / "file" / "p", {}, TENSORS)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_too_long_for_the_file_system_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 300)
    with named(path):
        write(path, {}, TENSORS)
    assert listing(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """In a process without root's rights, for whom no folder is closed."""
    folder = tmp_path / "closed"
    folder.mkdir()
    write(folder / "old", {"age": "old"}, TENSORS)
    folder.chmod(0o555)
    if os.geteuid() == 0:
        # Root cannot be refused: an immutable place of the system stands in.
        with named(Path("/proc/p")):
            write("/proc/p", {}, TENSORS)
    else:
        with named(folder / "old"):
            write(folder / "old", {"age": "new"}, TENSORS)
    folder.chmod(0o755)
    assert read(folder / "old")[0]["age"] == "old"
    assert listing(folder) == ["old"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_is_as_readable_as_any_other_new_file(tmp_path: Path) -> None:
    """Colleagues share the folder of a cache."""
    (tmp_path / "plain").write_text("")
    write(tmp_path / "p", {}, TENSORS)
    mode = stat.S_IMODE((tmp_path / "p").stat().st_mode)
    assert mode == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "whole", HEADER, TENSORS)
    data = (tmp_path / "whole").read_bytes()
    path = tmp_path / "cut"
    for length in [*range(40), *range(40, len(data) - 8, 13), *range(len(data) - 8, len(data))]:
        path.write_bytes(data[:length])
        with named(path):
            read(path)
    path.write_bytes(data + b"more")
    with named(path):
        read(path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=300), small=st.booleans())
def test_random_bytes_are_refused(tmp_path: Path, noise: bytes, small: bool) -> None:
    path = tmp_path / "noise"
    path.write_bytes(len(noise).to_bytes(8, "little") + noise if small else noise)
    with named(path):
        read(path)


class Trap:
    """Unpickling it leaves a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(os.environ["SCAML_TRAP"]),)


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickle_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_torch: bool
) -> None:
    monkeypatch.setenv("SCAML_TRAP", str(tmp_path / "sprung"))
    path = tmp_path / "p.pkl"
    if by_torch:
        torch.save({"x": Trap()}, path)
    else:
        path.write_bytes(pickle.dumps(Trap()))
    with named(path):
        read(path)
    assert listing(tmp_path) == ["p.pkl"]


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", tmp_path / "no" / "p"):
        with named(path):
            read(path)
    assert listing(tmp_path) == []


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "plain")
    save_file(TENSORS, tmp_path / "other", metadata={"format": "pt"})
    for name in ("plain", "other"):
        with named(tmp_path / name, "was not written by scaml"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("", "damaged header"),
        ("{", "damaged header"),
        ("[" * 100_000, "damaged header"),
        ('{"a":' * 50_000, "damaged header"),
        ('{"format": ' + "9" * 5000 + "}", "damaged header"),
        ("null", "without a format"),
        ("[]", "without a format"),
        ("7", "without a format"),
        ("{}", "without a format"),
        ({"format": "1"}, "without a format"),
        ({"format": 1.0}, "without a format"),
        ({"format": True}, "without a format"),
        ({"format": 0}, "without a format"),
        ({"format": -1}, "without a format"),
        ({"format": FORMAT + 1}, f"has format {FORMAT + 1}, .* update scaml"),
        ({"format": 10**30}, "update scaml"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: Any, words: str) -> None:
    path = foreign(tmp_path / "p", header)
    with named(path, words):
        read(path)


def raw(path: Path, table: dict[str, Any], payload: bytes) -> Path:
    """A safetensors file by hand."""
    table = {"__metadata__": {"scaml": json.dumps({"format": 1})}, **table}
    text = json.dumps(table).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + payload)
    return path


def test_the_file_by_hand_is_one(tmp_path: Path) -> None:
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    assert read(raw(tmp_path / "p", {"x": entry}, bytes(8)))[1]["x"].tolist() == [0.0]


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**62], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0, 2**63]},
        {"dtype": "object", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": "x", "data_offsets": [0, 8]},
        {"dtype": "F64"},
        [],
        None,
    ],
    ids=str,
)
def test_a_table_of_tensors_that_lies_is_refused(tmp_path: Path, entry: Any) -> None:
    path = raw(tmp_path / "p", {"x": entry}, bytes(8))
    with named(path):
        read(path)


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "U16", "U64", "C64", "BF16"])
def test_a_kind_of_number_that_torch_may_not_have_is_read_or_refused(
    tmp_path: Path, dtype: str
) -> None:
    bits = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8, "U16": 16, "BF16": 16}.get(dtype, 64)
    entry = {"dtype": dtype, "shape": [8 * 24 // bits], "data_offsets": [0, 24]}
    path = raw(tmp_path / "p", {"x": entry}, bytes(24))
    with suppress(SavedFileError):
        assert list(read(path)[1]) == ["x"]


def test_a_file_that_is_replaced_while_it_is_read_gives_one_file_or_the_other(tmp_path: Path) -> None:
    """Another process may save at any moment; here one that does so all the time."""
    for who in (1, 2):
        x = torch.full((20_000,), float(who), dtype=torch.float64)
        write(tmp_path / f"{who}", {"who": who}, {"x": x})
    path = tmp_path / "p"
    shutil.copyfile(tmp_path / "1", path)
    program = (
        "import os, shutil, sys\n"
        "while os.path.exists(sys.argv[1] + '/go'):\n"
        "    for who in '12':\n"
        "        shutil.copyfile(sys.argv[1] + '/' + who, sys.argv[1] + '/part')\n"
        "        os.replace(sys.argv[1] + '/part', sys.argv[1] + '/p')\n"
    )
    (tmp_path / "go").touch()
    seen = set()
    with subprocess.Popen([sys.executable, "-SE", "-c", program, str(tmp_path)]):
        try:
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                header, tensors = read(path)
                assert (tensors["x"] == header["who"]).all()
                seen.add(header["who"])
        finally:
            (tmp_path / "go").unlink()
    assert seen == {1, 2}
