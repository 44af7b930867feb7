"""Every method of scaml passes the suite that scaml ships.

Methods that train are given small budgets; all other settings are their defaults.
"""

from __future__ import annotations

from typing import Any

import scaml.methods
from scaml.methods import ABLR, FSBO, GC3P, GPBO, MTGP, RGPE, RMGPUCB, SGPT, Method, ScaML, StackGP
from scaml.testing import MetaLearnerTestCase


class TestScaML(MetaLearnerTestCase):
    method = ScaML()


class TestScaMLOfThePaper(MetaLearnerTestCase):
    method = ScaML.paper()


class TestExplainedScaML(MetaLearnerTestCase):
    method = ScaML(weights="explained")


class TestGPBO(MetaLearnerTestCase):
    method = GPBO()
    uses_past = False


class TestRGPE(MetaLearnerTestCase):
    method = RGPE()


class TestSGPT(MetaLearnerTestCase):
    method = SGPT()


class TestStackGP(MetaLearnerTestCase):
    method = StackGP()


class TestStackGPOfVizier(MetaLearnerTestCase):
    method = StackGP(deviations="geometric", alpha=2.0)


class TestABLR(MetaLearnerTestCase):
    method = ABLR(iterations=60)


class TestRetrainedABLR(MetaLearnerTestCase):
    method = ABLR(iterations=15, retrain=True)


class TestRMGPUCB(MetaLearnerTestCase):
    method = RMGPUCB()


class TestFSBO(MetaLearnerTestCase):
    method = FSBO(iterations=40, epochs=10)


class TestFSBOWithInitialPoints(MetaLearnerTestCase):
    """Initial points take the place of the first suggestions."""

    method = FSBO(iterations=10, epochs=2, initial=2)


class TestGC3P(MetaLearnerTestCase):
    method = GC3P(updates=100)


class TestMTGP(MetaLearnerTestCase):
    method = MTGP(max_iterations=30, warm_iterations=15)


class TestColdMTGP(MetaLearnerTestCase):
    method = MTGP(max_iterations=10, warm_start=False, kernel="matern52", rank=1)


def test_no_method_is_left_out() -> None:
    names: dict[str, Any] = {name: getattr(scaml.methods, name) for name in scaml.methods.__all__}
    methods = {value for value in names.values() if issubclass(value, Method)} - {Method}
    cases = [case for name, case in globals().items() if name.startswith("Test")]
    assert {type(case.method) for case in cases} == methods
