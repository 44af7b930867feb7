"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from scaml.common.files import DRAFTS, replacing, replacing_all

interrupted = pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("old", [None, "old"])
def test_a_file_takes_its_place_at_the_end(tmp_path: Path, old: str | None) -> None:
    target = tmp_path / "a.csv"
    if old is not None:
        target.write_text(old)
    with replacing(target) as draft:
        draft.write_text("new")
        assert draft.parent == tmp_path
        assert list(tmp_path.glob(DRAFTS)) == [draft]
        assert (target.read_text() if target.exists() else None) == old
    assert contents(tmp_path) == {"a.csv": "new"}


@interrupted
@pytest.mark.parametrize("old", [{}, {"a.csv": "old"}])
def test_a_failure_in_the_middle_leaves_what_was_there(
    tmp_path: Path, error: BaseException, old: dict[str, str]
) -> None:
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(type(error)), replacing(tmp_path / "a.csv") as draft:  # noqa: PT012
        draft.write_text("half")
        raise error
    assert contents(tmp_path) == old


def test_a_file_that_is_not_even_begun_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), replacing(tmp_path / "a.csv"):
        raise KeyError
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("place", ["none/a.csv", "file/a.csv", "a\0.csv"])
def test_what_is_wrong_with_a_place_arrives_as_it_was(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises((OSError, ValueError)), replacing(tmp_path / place) as draft:
        draft.write_text("new")
    assert contents(tmp_path) == {"file": "mine"}


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(OSError), replacing(tmp_path / "folder") as draft:  # noqa: PT011
        draft.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_others_may_read_the_file_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    with replacing(tmp_path / "a.csv") as draft:
        draft.write_text("new")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    with replacing(target) as first, replacing(target) as second:
        first.write_text("first")
        second.write_text("second")
    assert contents(tmp_path) == {"a.csv": "first"}  # whose block ended last


def test_files_that_belong_together(tmp_path: Path) -> None:
    with replacing_all([tmp_path / "a", tmp_path / "b"]) as drafts:
        for draft in drafts:
            draft.write_text("new")
    assert contents(tmp_path) == {"a": "new", "b": "new"}
    with replacing_all([]) as drafts:
        assert drafts == []


@interrupted
@pytest.mark.parametrize("old", [{}, {"a": "old a"}, {"a": "old a", "b": "old b"}])
def test_where_the_second_fails_the_first_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, old: dict[str, str]
) -> None:
    for name, text in old.items():
        (tmp_path / name).write_text(text)
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if target.name == "b":
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    targets = [tmp_path / name for name in "abc"]
    with pytest.raises(type(error)), replacing_all(targets) as drafts:  # noqa: PT012
        for draft in drafts:
            draft.write_text("new")
    assert contents(tmp_path) == old
