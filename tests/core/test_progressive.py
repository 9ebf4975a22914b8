"""Algorithm 1 over a toy learner that keeps a diary."""

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pren.core.progressive import Plan, Round, progressive_training
from pren.core.pseudo import PseudoLabels, top_per_class

UNSEEN = np.array([False, False, True, True, True])
IMAGES = 20
ZSL = Plan(rounds=3, per_class=2, unseen=UNSEEN, first_rounds=None)
GZSL = Plan(rounds=4, per_class=4, unseen=UNSEEN, first_rounds=2)
BOTH = pytest.mark.parametrize("plan", [ZSL, GZSL], ids=["zsl", "gzsl"])


def pairs(pseudo):
    return list(zip(pseudo.images.tolist(), pseudo.labels.tolist(), strict=True))


class Toy:
    """Its scores depend on all that it was trained on, and on the candidates."""

    def __init__(self):
        self.diary = []
        self.memory = []

    def train(self, pseudo, number):
        self.memory += [number, *pseudo.images.tolist(), *pseudo.labels.tolist()]
        self.diary.append(("train", number, pairs(pseudo)))
        return 100.0 + len(self.memory)

    def score(self, candidates):
        self.diary.append(("score", candidates.tolist()))
        return self.scores(candidates)

    def scores(self, candidates):
        return np.random.default_rng([*self.memory, *candidates.astype(int)]).random((IMAGES, len(UNSEEN)))


class Rule:
    """The paper's rule, which writes down what it is given."""

    def __init__(self):
        self.given = []

    def __call__(self, scores, candidates, per_class, last, progress):
        self.given.append((scores, candidates, per_class, last, progress))
        return top_per_class(scores, candidates, per_class, last, progress)


def run(learner, plan, last=None, select=top_per_class):
    return list(progressive_training(learner, select, plan, last))


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_one_round_on_the_seen_classes_and_then_as_many_as_asked_for(rounds):
    learner = Toy()
    done = run(learner, replace(ZSL, rounds=rounds))
    assert [(each.number, each.of, each.kind) for each in done] == [(n, rounds, "round") for n in range(rounds + 1)]
    assert learner.diary[0] == ("train", 0, [])
    assert [entry[0] for entry in learner.diary] == ["train", *["score", "train"] * rounds]


@BOTH
def test_the_algorithm_step_by_step(plan):
    """As it stands in the paper, written out."""
    learner, rule, same = Toy(), Rule(), Toy()
    same.train(PseudoLabels.none(), 0)
    pseudo = PseudoLabels.none()
    rounds = progressive_training(learner, rule, plan)
    next(rounds)
    for number in range(1, plan.rounds + 1):
        general = plan.first_rounds is not None and number > plan.first_rounds
        candidates = np.ones(5, dtype=bool) if general else UNSEEN
        scores = same.score(candidates)
        before, pseudo = pseudo, top_per_class(scores, candidates, plan.per_class, pseudo)
        loss = same.train(pseudo, number)
        done = next(rounds)
        assert learner.diary == same.diary
        given_scores, given_candidates, per_class, last, progress = rule.given[-1]
        assert progress == number / plan.rounds
        assert np.array_equal(given_scores, scores)
        assert np.array_equal(given_candidates, candidates)
        assert per_class == plan.per_class
        assert pairs(last) == pairs(before)
        assert pairs(done.pseudo) == pairs(pseudo)
        assert done.figures == {
            "loss": loss,
            "pseudo_labels": len(pseudo),
            "changed": len(set(pairs(pseudo)) - set(pairs(before))),
        }
        assert 0 < done.figures["pseudo_labels"] >= done.figures["changed"] > 0
    assert next(rounds, None) is None
    assert learner.diary == same.diary


def test_the_first_round_has_no_pseudo_labels():
    learner = Toy()
    done = next(progressive_training(learner, Rule(), ZSL))
    assert done.figures == {"loss": 101.0, "pseudo_labels": 0, "changed": 0}
    assert len(done.pseudo) == 0


def test_a_round_is_handed_out_before_the_next_one_begins():
    learner = Toy()
    rounds = progressive_training(learner, top_per_class, ZSL)
    assert learner.diary == []
    for trained in (1, 2, 3, 4):
        next(rounds)
        assert len(learner.diary) == 2 * trained - 1


@pytest.mark.parametrize("first_rounds", [0, 1, 7, None])
def test_how_many_rounds_are_the_first(first_rounds):
    plan = replace(GZSL, first_rounds=first_rounds)
    for number in (1, 2, 7, 8):
        candidates = plan.candidates(number)
        assert candidates[UNSEEN].all()
        assert candidates[~UNSEEN].tolist() == [first_rounds is not None and number > first_rounds] * 2


@BOTH
def test_going_on_after_any_round_is_as_if_nothing_had_happened(plan):
    learner, rule, copies = Toy(), Rule(), []
    whole = []
    for done in progressive_training(learner, rule, plan):
        whole.append(done)
        copies.append(copy.deepcopy(learner))
    for stop, left in enumerate(copies):
        # What is read from a file knows the number and the pseudo-labels alone.
        last, again = Round(stop, 0, {}, whole[stop].pseudo), Rule()
        rest = run(left, plan, last, again)
        assert left.diary == learner.diary
        assert [(r.number, r.of, r.figures, pairs(r.pseudo)) for r in rest] == [
            (r.number, r.of, r.figures, pairs(r.pseudo)) for r in whole[stop + 1 :]
        ]
        assert [pairs(given[3]) for given in again.given] == [pairs(given[3]) for given in rule.given[stop:]]


def test_more_rounds_go_on_where_fewer_ended():
    learner, longer = Toy(), Toy()
    last = run(learner, ZSL)[-1]
    run(learner, replace(ZSL, rounds=5), last)
    run(longer, replace(ZSL, rounds=5))
    assert learner.diary == longer.diary


def test_a_last_round_without_pseudo_labels_counts_as_one_with_none():
    rule = Rule()
    rest = run(Toy(), ZSL, Round(2, 3, {}, pseudo=None), rule)
    assert [done.number for done in rest] == [3]
    assert len(rule.given[0][3]) == 0
    assert rest[0].figures["changed"] == rest[0].figures["pseudo_labels"]


def test_a_rule_may_build_on_the_last_set():
    """A rule that only ever adds: impossible if it were not told what there was."""

    def keep(scores, candidates, per_class, last, progress):
        fresh = top_per_class(scores, candidates, 1, last)
        new = ~np.isin(fresh.images, last.images)
        return PseudoLabels(
            np.concatenate([last.images, fresh.images[new]]), np.concatenate([last.labels, fresh.labels[new]])
        )

    rounds = run(Toy(), ZSL, select=keep)
    for before, after in pairwise(rounds):
        assert pairs(after.pseudo)[: len(before.pseudo)] == pairs(before.pseudo)
        assert after.figures["changed"] == len(after.pseudo) - len(before.pseudo)
    assert len(rounds[-1].pseudo) > len(rounds[1].pseudo)


def test_a_rule_may_choose_nobody():
    learner = Toy()
    rounds = run(learner, ZSL, select=lambda *_: PseudoLabels.none())
    assert [done.figures["pseudo_labels"] for done in rounds] == [0] * 4
    assert [entry for entry in learner.diary if entry[0] == "train"] == [("train", n, []) for n in range(4)]
