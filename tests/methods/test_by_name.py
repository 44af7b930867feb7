from __future__ import annotations

import pytest

from scaml import SettingError, methods
from scaml.methods import GPBO, ScaML
from scaml.methods.by_name import METHOD_NAMES, method_named


def test_every_method_has_its_class_name_in_lower_case() -> None:
    classes = {
        name: cls
        for name in methods.__all__
        if issubclass(cls := getattr(methods, name), methods.Method) and cls is not methods.Method
    }
    assert len(classes) == 10
    for name, cls in classes.items():
        assert method_named(name.lower()) == cls()


def test_six_names_stand_for_other_settings() -> None:
    assert method_named("scaml-ucb") == ScaML("se", "clipped", "shared", "ucb", 3.0, "past")
    assert method_named("scaml") == ScaML("past", "clipped", "past", "lognei", 3.0, "past")
    assert method_named("scaml-explained") == ScaML(weights="explained")
    assert method_named("scaml-paper") == ScaML.paper()
    assert method_named("scaml-shared") == ScaML("se", "clipped", "shared", "lognei", 3.0, "past")
    assert method_named("gpbo-nei") == GPBO(acquisition="lognei")
    assert method_named("gpbo-nei-matern52") == GPBO("matern52", "lognei")
    assert len(METHOD_NAMES) == 16


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(
        SettingError, match=r"There is no method 'scmal'; did you mean 'scaml'\? A meth"
    ):
        method_named("scmal")
