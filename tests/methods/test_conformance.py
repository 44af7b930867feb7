"""Every method of scaml passes the suite that scaml ships."""

from __future__ import annotations

from scaml.methods import GPBO, ScaML
from scaml.testing import MetaLearnerTestCase


class TestScaML(MetaLearnerTestCase):
    method = ScaML()


class TestScaMLOfThePaper(MetaLearnerTestCase):
    method = ScaML(normalization="union")


class TestGPBO(MetaLearnerTestCase):
    method = GPBO()
