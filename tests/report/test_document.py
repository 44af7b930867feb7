from __future__ import annotations

import ast
import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import scaml.report
from scaml import SettingError, Task
from scaml.methods import GC3P, GPBO, RGPE, RMGPUCB, SGPT, StackGP
from scaml.methods.base import Method
from scaml.methods.gpbo import GPBOPrior
from scaml.report import Subject, page
from scaml.report.document import _data, page_of_run
from tests.cases import ONE_MODEL, meta_data, task_of
from tests.run_cases import UGLY, run_of, ugly

plotly = pytest.importorskip("plotly")
TITLES = [
    "Summary",
    "How much each past task counts",
    "Along each parameter",
    "Two parameters together",
    "How good are the predictions?",
    "How the parameters were matched",
]


class Reader(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data


@pytest.fixture(autouse=True, scope="module")
def library() -> Iterator[None]:
    """Five million characters that these tests need not read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plotly.offline.get_plotlyjs", lambda: "/* Plotly */")
        yield


@pytest.fixture(scope="module")
def text(library: None) -> str:
    return page(ugly())


def test_the_sections_come_in_their_order(text: str) -> None:
    reader = Reader(text)
    assert [text.strip() for text in reader.texts["h2"]] == TITLES
    assert len([tag for tag, attrs in reader.tags if attrs.get("class") == "chart"]) == 8


def test_names_stay_text(text: str) -> None:
    reader = Reader(text)
    assert reader.texts["h1"][0].strip() == UGLY
    assert UGLY not in text
    allowed = {"b", "i", "u", "img"}
    assert not allowed & {tag for tag, _ in reader.tags}
    assert not [name for _, attrs in reader.tags for name in attrs if name.startswith("on")]
    text.encode()


def test_the_page_needs_nothing_else(text: str) -> None:
    reader = Reader(text)
    for tag, attrs in reader.tags:
        assert tag not in ("link", "iframe", "object", "embed")
        assert not {"src", "href"} & attrs.keys()


def test_the_policy_allows_these_scripts_alone(text: str) -> None:
    reader = Reader(text)
    data, *scripts = reader.texts["script"]
    (policy,) = [attrs["content"] or "" for _, attrs in reader.tags if "http-equiv" in attrs]
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == len(scripts) == 2
    places = [attrs["id"] for _, attrs in reader.tags if attrs.get("class") == "chart"]
    assert [chart["id"] for chart in json.loads(data)] == places


def test_data_cannot_end_their_script() -> None:
    chart = {"id": "</script><!-- &"}
    text = _data([chart])
    assert not set(text) & set("<>&")
    assert json.loads(text) == [chart]


def test_the_library_is_inlined_once(text: str) -> None:
    assert text.count("/* Plotly */") == 1


def test_the_file_is_the_text_and_nothing_is_left_beside_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    assert page(ugly(), path) == text  # same arguments, same page
    assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    nothing = Subject(GPBOPrior(GPBO(), 2), Task.empty(2))
    with pytest.raises(SettingError, match="cannot be written"):
        page(nothing, tmp_path / "no folder" / "page.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SettingError, match="cannot be written"):
        page(nothing, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(SettingError, match=r"give a scaml\.report\.Subject"):
        page("subject")  # type: ignore[arg-type]


METHODS = [GPBO(), RGPE(samples=16), SGPT(), RMGPUCB(), StackGP()]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("n", [0, 4])
def test_other_methods_have_a_page_too(method: Method, n: int) -> None:
    task = task_of(n, 2) if n else Task.empty(2)
    prior = method.meta_fit(meta_data((6, 7), 2))
    text = page(Subject(prior, task, suggestions=task_of(1, 2).X))
    assert all(title in text for title in TITLES)


def test_the_page_of_a_run_is_the_page_of_its_subject() -> None:
    run = run_of(4)
    assert page_of_run(run) == page(run.subject)


def test_a_model_of_ranks_shows_no_values() -> None:
    prior = GC3P(updates=2).meta_fit(meta_data((6, 7), 2))
    text = page(Subject(prior, task_of(4, 2), suggestions=task_of(1, 2).X))
    assert "GC3P predicts the rank of a value" in text
    assert "Expected y" not in text


def test_many_tasks_and_many_parameters() -> None:
    run = run_of(3, d=13, sizes=(4,) * 42)
    text = page(run.subject)
    assert "The charts show the 12 of 13 parameters" in text
    assert "The chart shows the 40 largest weights" in text


def test_no_past_and_one_past_task() -> None:
    text = page(Subject(GPBOPrior(GPBO(), 2), Task.empty(2)))
    assert "No experiment has been made yet" in text
    assert "There is no past task" in text
    assert page(run_of(3, sizes=(6,)).subject).count("past task") > 3


def test_without_plotly_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plotly", "plotly.offline", "plotly.graph_objects"):
        monkeypatch.setitem(sys.modules, name, None)
    for draw in (lambda: page(ugly()), lambda: scaml.report.progress(task_of(3, 2))):
        with pytest.raises(SettingError, match=r"run pip install 'scaml\[report\]'"):
            draw()


def test_plotly_is_imported_by_name_alone() -> None:
    for path in Path(scaml.report.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:  # not those under `if TYPE_CHECKING`
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "plotly"]


def test_the_task_may_be_one_that_never_changes() -> None:
    X = task_of(4, 2).X
    prior = ONE_MODEL.meta_fit(meta_data((6, 7), 2))
    assert "reached 1e90 in y" in page(Subject(prior, Task(X, [1e90] * 4)))
