"""A hook of MkDocs: adds figures and a report to the site, and a folder per page for its examples."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "docs"


def on_pre_build(config: MkDocsConfig) -> None:
    """Let the pages find the commands of this environment, which need not be activated, and `study`."""
    shutil.rmtree(WORK, ignore_errors=True)
    sys.path.insert(0, str(ROOT))
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["COLUMNS"] = "96"
    warnings.filterwarnings(
        "ignore", category=DeprecationWarning, module="torch"
    )  # while it is imported


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the figures of the results, and a report of the example table."""
    for figure in sorted((ROOT / "results" / "figures").glob("*.png")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    files.append(File.generated(config, "report.html", abs_src_path=str(_report())))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Give every page a folder of its own, with what a reader has after cloning."""
    _go_to(WORK / page.file.src_path.removesuffix(".md"))


def _go_to(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("examples", "results"):
        (folder / name).symlink_to(ROOT / name)
    os.chdir(folder)


def _report() -> Path:
    from scaml.cli import main

    _go_to(WORK / "report")
    words = "report examples/reactions.csv --task new --objective yield --out page.html --quiet"
    with redirect_stdout(StringIO()):
        code = main(words.split())
    if code:
        raise SystemExit("The report of the example table was not written.")
    return WORK / "report" / "page.html"
