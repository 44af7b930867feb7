"""The page as a browser draws it."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scaml.report import page
from tests.run_cases import UGLY, ugly

pytest.importorskip("plotly")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in BROWSERS if (found := shutil.which(name))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on the PATH")


class Drawn(HTMLParser):
    """Charts, by the number of Plotly's drawings in each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.charts: dict[str, int] = {}
        self.heading = ""
        self.labels: list[str] = []
        self._tag = self._chart = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if "chart" in classes:
            self._chart = given.get("id") or ""
            self.charts[self._chart] = 0
        if "main-svg" in classes and self._chart:
            self.charts[self._chart] += 1

    def handle_data(self, data: str) -> None:
        if self._tag == "h1":
            self.heading += data
        if self._tag in ("text", "tspan"):
            self.labels.append(data)


def opened(path: Path, folder: Path) -> tuple[str, list[str]]:
    """The page after its scripts have run, and what they said."""
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={folder}",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=1000",
        "--window-size=1400,2000",
        "--dump-dom",
        path.as_uri(),
    ]
    done = subprocess.run(
        command, capture_output=True, timeout=60, check=True, env={**os.environ, "HOME": str(folder)}
    )
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
    return done.stdout.decode(), said


@needs_browser
def test_every_chart_is_drawn_and_no_script_complains(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page(ugly(), path)
    text, said = opened(path, tmp_path / "profile")
    drawn = Drawn(text)
    assert not said
    assert len(drawn.charts) == 8
    assert all(drawn.charts.values()), drawn.charts
    assert drawn.heading.strip() == UGLY
    assert UGLY in drawn.labels
    assert "$x^2$" in "".join(drawn.labels)


@needs_browser
def test_a_script_that_complains_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("<!DOCTYPE html><script>console.error('no')</script>")
    assert len(opened(path, tmp_path / "profile")[1]) == 1
