from __future__ import annotations

from scaml.errors import ScaMLError
from scaml.explain import run
from scaml.explain.inapplicable import Inapplicable


def test_a_caller_may_catch_it_with_all_others() -> None:
    assert issubclass(Inapplicable, ScaMLError)
    assert run.Inapplicable is Inapplicable
