"""Defects can be planted where they are meant to be, and the tests that should notice them are there."""

from campaigns.mutants import MUTANTS, REPOSITORY, SOURCE


def test_every_defect_has_its_place_and_its_tests():
    text = {mutant.file: (SOURCE / "pren" / mutant.file).read_text("utf-8") for mutant in MUTANTS}
    assert [mutant for mutant in MUTANTS if text[mutant.file].count(mutant.before) != 1] == []
    assert [mutant.tests for mutant in MUTANTS if not (REPOSITORY / "tests" / mutant.tests).exists()] == []
