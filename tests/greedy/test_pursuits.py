"""Pursuits: what they maintain, what they choose, and the rows they ask for."""

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import qr

from pursuit.greedy import pursuits
from pursuit.greedy.gram_rows import SmallGram
from pursuit.greedy.pursuits import BasicPursuit, PivotedFactor


class Dense:
    """G = D'D + alpha I as a plain matrix; counts the rows that were asked for."""

    shareable = True
    panel = 16

    def __init__(self, D, alpha=0.0):
        self.matrix = D.T @ D + alpha * np.eye(D.shape[1])
        self.diagonal = self.matrix.diagonal().copy()
        self.alpha = alpha
        self.asked = []

    def has(self, index):
        return True

    def row(self, index):
        self.asked.append(index)
        return self.matrix[index]


@pytest.fixture
def problem(rng):
    """Correlated atoms with a common direction, the last one a combination; two targets."""
    D = rng.normal(size=(40, 12)) + 2.0 * rng.normal(size=(40, 1))
    D[:, 11] = D[:, 3] - 0.5 * D[:, 7]
    Y = rng.normal(size=(40, 2)) + D[:, [1, 5]]
    return D, Y


def pursuit(D, Y, rule="prefit", alpha=0.0, excluded=None, **options):
    start = Dense(D, alpha), Y.T @ D, (Y**2).sum(axis=0), excluded
    return BasicPursuit(*start) if rule == "basic" else PivotedFactor(*start, rule=rule, **options)


@pytest.mark.parametrize("rule", ["prefit", "backfit"])
def test_state_after_every_step_is_that_of_gram_schmidt(rule, problem):
    D, Y = problem
    greedy = pursuit(D, Y, rule)
    basis = np.empty((40, 0))
    residual = Y.copy()
    for n in range(1, 9):
        assert greedy.step() is None
        g = greedy.pivots[-1]
        q = D[:, g] - basis @ (basis.T @ D[:, g])
        basis = np.column_stack([basis, q / np.linalg.norm(q)])
        before = (residual**2).sum()
        residual = Y - basis @ (basis.T @ Y)
        factor, z = greedy.solution()
        # |R_n|^2 = |R_{n-1}|^2 - |z_n|^2
        assert_allclose((residual**2).sum(), before - (z[-1] ** 2).sum(), rtol=1e-12)
        assert_allclose(greedy.gained, (Y**2).sum() - (residual**2).sum(), rtol=1e-12)
        outside = D - basis @ (basis.T @ D)
        # Of the three dependent atoms two are independent.
        dependent = [3, 7, 11] if len({3, 7, 11} & set(greedy.pivots)) == 2 else []
        free = np.setdiff1d(np.arange(12), [*greedy.pivots, *dependent])
        left = (outside[:, free] ** 2).sum(axis=0)
        assert_allclose(greedy.factor.residual[free], left, rtol=1e-10)
        assert_allclose(greedy.cross[:, free], residual.T @ D[:, free], atol=1e-11)
        assert_allclose(greedy.factor.V[:n], basis.T @ D, atol=1e-11)
        assert_allclose(np.tril(factor, -1), 0.0, atol=0.0)
        assert_allclose(factor.T @ factor, (D.T @ D)[np.ix_(greedy.pivots, greedy.pivots)])
        orthonormal = np.linalg.solve(factor.T, D[:, greedy.pivots].T).T
        assert_allclose(orthonormal.T @ orthonormal, np.eye(n), atol=1e-12)
        assert_allclose(z, orthonormal.T @ Y, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_picks_and_coefficients_equal_reference(rule, alpha, problem):
    D, Y = problem
    path = reference.PURSUITS[rule](D, Y, np.ones(40), 8, alpha, intercept=False)
    greedy = pursuit(D, Y, rule, alpha)
    assert greedy.extend(8) is None
    distinct = list(dict.fromkeys(greedy.pivots))
    assert distinct == path[-1].support
    factor, z = greedy.solution()
    coefficients = np.zeros((12, 2))
    np.add.at(coefficients, greedy.pivots, np.linalg.solve(factor, z))
    assert_allclose(coefficients[distinct].T, path[-1].coefficients, rtol=1e-9)


def test_prefit_maximises_the_gain(problem):
    """Eq. 7: no other atom would leave a smaller residual."""
    D, Y = problem
    greedy = pursuit(D, Y)
    for _ in range(8):
        greedy.step()
        *earlier, g = greedy.pivots

        def left(k, earlier=tuple(earlier)):
            columns = D[:, [*earlier, k]]
            return ((Y - columns @ np.linalg.lstsq(columns, Y, rcond=None)[0]) ** 2).sum()

        others = np.setdiff1d(np.arange(12), earlier)
        assert left(g) <= min(left(k) for k in others) * (1 + 1e-12)


def test_prefit_and_backfit_differ(problem):
    D, Y = problem
    picks = []
    for rule in ("prefit", "backfit"):
        greedy = pursuit(D, Y, rule)
        greedy.extend(8)
        picks.append(greedy.pivots)
    assert picks[0][0] == picks[1][0]
    assert picks[0] != picks[1]


def test_basic_is_figure_1(problem):
    D, Y = problem
    greedy = pursuit(D, Y, "basic")
    assert greedy.extend(30) is None
    R, a = Y.copy(), np.zeros((12, 2))
    lengths = np.linalg.norm(D, axis=0)
    for g in greedy.pivots:
        scores = (((D / lengths).T @ R) ** 2).sum(axis=1)
        assert scores[g] >= scores.max() * (1 - 1e-9)
        step = D[:, g] @ R / lengths[g] ** 2
        a[g] += step
        R -= np.outer(D[:, g], step)
    assert len(set(greedy.pivots)) < 30  # an atom came back
    factor, z = greedy.solution()
    coefficients = np.zeros((12, 2))
    np.add.at(coefficients, greedy.pivots, np.linalg.solve(factor, z))
    assert_allclose(coefficients, a, rtol=1e-9, atol=1e-12)
    assert_allclose((Y**2).sum() - (z**2).sum(), (R**2).sum(), rtol=1e-10)


def test_residual_rule_is_the_pivoting_of_qr(problem):
    D, Y = problem
    greedy = pursuit(D, Y, "residual", supervised=False)
    assert greedy.extend(20) == "rank"
    R, pivots = qr(D, mode="r", pivoting=True)
    assert_array_equal(greedy.pivots, pivots[:11])
    assert_allclose(np.diag(greedy.solution()[0]), np.abs(np.diag(R))[:11], rtol=1e-10)


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic", "residual"])
def test_lowest_index_wins_a_tie(rule, rng):
    D = rng.normal(size=(30, 9))
    twins = np.repeat(D, 3, axis=1)[:, ::-1] * 1.0
    greedy = pursuit(twins, D[:, :2] + D[:, [4]], rule)
    greedy.extend(6)
    assert all(g % 3 == 0 for g in greedy.pivots)


@pytest.mark.parametrize("rule", ["prefit", "backfit", "residual"])
def test_dependent_atoms_are_never_chosen(rule, rng):
    D = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 20))
    greedy = pursuit(D, rng.normal(size=(30, 1)), rule)
    assert greedy.extend(20) == "rank"
    assert len(greedy.pivots) == 5
    assert np.linalg.cond(D[:, greedy.pivots]) < 1e4
    assert greedy.step() == "rank"  # and stays so


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_explained_targets_end_the_path(rule, rng):
    D = np.linalg.qr(rng.normal(size=(20, 6)))[0]
    Y = D[:, [1, 4]] @ rng.normal(size=(2, 3))
    greedy = pursuit(D, Y, rule)
    assert greedy.extend(6) == "zero_residual"
    assert sorted(greedy.pivots) == [1, 4]


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_targets_out_of_reach_end_the_path(rule):
    D = np.eye(6)[:, :3]
    Y = np.eye(6)[:, [4]]
    greedy = pursuit(D, Y, rule)
    assert greedy.extend(3) == "no_gain"
    assert greedy.pivots == []


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_zero_targets_and_zero_atoms(rule):
    D = np.eye(5)[:, :3] * [1.0, 0.0, 1.0]
    assert pursuit(D, np.zeros((5, 1)), rule).extend(3) == "zero_residual"
    greedy = pursuit(D, np.arange(5.0)[::-1, None], rule)
    greedy.extend(3)
    assert sorted(greedy.pivots) == [0, 2]
    assert pursuit(np.zeros((5, 2)), np.ones((5, 1)), rule).step() == "rank"


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic", "residual"])
def test_barred_atoms_are_never_chosen(rule, problem):
    D, Y = problem
    excluded = np.isin(np.arange(12), [0, 1, 5, 11])
    greedy = pursuit(D, Y, rule, excluded=excluded)
    greedy.extend(8)
    free = pursuit(D[:, ~excluded], Y, rule)
    free.extend(8)
    assert greedy.pivots == np.flatnonzero(~excluded)[free.pivots].tolist()
    assert excluded.sum() == 4  # the caller's array is as it was


def test_all_atoms_barred(problem):
    D, Y = problem
    for rule in ("prefit", "basic"):
        assert pursuit(D, Y, rule, excluded=np.ones(12, dtype=bool)).extend(3) == "rank"


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_extending_in_parts_is_extending_at_once(rule, problem):
    D, Y = problem
    parts, whole = pursuit(D, Y, rule), pursuit(D, Y, rule)
    for n in (1, 0, 3, 4):
        assert parts.extend(n) is None
        parts.solution()
    whole.extend(8)
    assert parts.pivots == whole.pivots
    for a, b in zip(parts.solution(), whole.solution(), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_ridge_does_not_choose_a_copy(rule, problem):
    """A copy would split a coefficient and halve its penalty; a row of weight two cannot."""
    D, Y = problem
    twins = np.hstack([D, D])
    greedy, single = pursuit(twins, Y, rule, alpha=2.0), pursuit(D, Y, rule, alpha=2.0)
    greedy.extend(10)
    single.extend(10)
    assert greedy.pivots == single.pivots


@pytest.mark.parametrize("rule", ["prefit", "backfit", "basic"])
def test_inputs_stay_as_they_are_and_a_step_asks_for_one_row(rule, problem):
    D, Y = problem
    gram, cross, target_sq_norm = Dense(D), Y.T @ D, (Y**2).sum(axis=0)
    before = gram.matrix.copy(), gram.diagonal.copy(), cross.copy(), target_sq_norm.copy()
    kinds = {"basic": BasicPursuit}
    greedy = kinds.get(rule, PivotedFactor)(gram, cross, target_sq_norm)
    greedy.extend(6)
    for array, old in zip((gram.matrix, gram.diagonal, cross, target_sq_norm), before, strict=True):
        assert_array_equal(array, old)
    assert gram.asked == greedy.pivots


class Remote(Dense):
    """Rows that come in panels: the first of those named as likely."""

    panel = 8
    shareable = False

    def __init__(self, D, alpha=0.0):
        super().__init__(D, alpha)
        self.at_hand = set()

    def has(self, index):
        return index in self.at_hand

    def among(self, atoms):
        return SmallGram(self.matrix[np.ix_(atoms, atoms)])

    def prefetch(self, atoms):
        assert len(set(atoms.tolist())) == len(atoms)
        new = [k for k in atoms.tolist() if k not in self.at_hand]
        assert new[0] == atoms[0]
        self.at_hand |= set(new[: self.panel])
        self.asked.append(atoms[0])

    def row(self, index):
        assert index in self.at_hand
        return self.matrix[index]


def bumps(rng):
    """Narrow Gaussians on a line, and a wavy target."""
    points = rng.uniform(size=(300, 1))
    D = np.exp(-((points - points[:200].T) ** 2) / 0.002)
    return D, np.sin(25 * points) + np.cos(9 * points) + 0.3 * rng.normal(size=(300, 1))


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("rule", ["prefit", "backfit"])
def test_a_draft_foresees_the_next_steps(rule, alpha, rng):
    """Fewer panels than the best scores alone would need, and the same picks."""
    D, Y = bumps(rng)
    start = Y.T @ D, (Y**2).sum(axis=0)
    near = PivotedFactor(Dense(D, alpha), *start, rule=rule)
    far = PivotedFactor(Remote(D, alpha), *start, rule=rule)
    near.extend(24)
    far.extend(24)
    assert far.pivots == near.pivots
    assert_allclose(far.factor.V[:24], near.factor.V[:24], atol=1e-9)
    # Three panels of eight would be perfect.
    assert len(far.gram.asked) <= 6


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("rule", ["prefit", "backfit"])
def test_looking_ahead_changes_nothing(rule, alpha, rng, monkeypatch):
    """Where V is long, rows of it come in panels: the same picks, gains and coefficients."""
    D, Y = bumps(rng)
    G, start = D.T @ D + alpha * np.eye(200), (Y.T @ D, (Y**2).sum(axis=0))
    plain = PivotedFactor(SmallGram(G, alpha=alpha), *start, rule=rule)
    plain.extend(40)
    panels = []
    monkeypatch.setattr(pursuits, "LARGEST_NEAR", 5 * 200)
    monkeypatch.setattr(pursuits, "LEAST_SHARE", 0)
    ahead = PivotedFactor(SmallGram(G, alpha=alpha), *start, rule=rule)
    look = ahead.factor.look_ahead
    monkeypatch.setattr(
        ahead.factor, "look_ahead", lambda *panel: panels.append(panel[0]) or look(*panel)
    )
    ahead.extend(40)
    assert ahead.pivots == plain.pivots
    assert ahead.gained == pytest.approx(plain.gained, rel=1e-10)
    assert_allclose(ahead.factor.V, plain.factor.V, atol=1e-8)
    assert_allclose(ahead.factor.residual, plain.factor.residual, atol=1e-10)
    assert panels[0][0] == plain.pivots[5]
    assert all(len(panel) <= ahead.gram.panel for panel in panels)
    assert len(panels) <= 20  # two steps a panel at least


def test_picks_beyond_a_definite_block_are_dropped(problem):
    """Where rounding has made G[picks, picks] indefinite the path ends before."""
    D, Y = problem
    greedy, shorter = pursuit(D, Y), pursuit(D, Y)
    greedy.extend(6)
    shorter.extend(3)
    greedy.gram_entries[3] = greedy.gram_entries[3] * [1.0, 1.0, 1.0, 0.0]
    factor, z = greedy.solution()
    assert greedy.pivots == shorter.pivots
    for found, expected in zip((factor, z), shorter.solution(), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_more_steps_than_the_first_capacity(rng):
    """V grows by doubling beyond 32 rows."""
    D = rng.normal(size=(120, 100))
    Y = rng.normal(size=(120, 1))
    greedy = pursuit(D, Y)
    assert greedy.extend(80) is None
    assert len(set(greedy.pivots)) == 80
    factor, z = greedy.solution()
    expected = np.linalg.lstsq(D[:, greedy.pivots], Y, rcond=None)[0]
    assert_allclose(np.linalg.solve(factor, z), expected, rtol=1e-8, atol=1e-10)


class Asked(Dense):
    """A G whose rows come in panels: what `prefetch` is told to bring along is recorded."""

    def __init__(self, D):
        super().__init__(D)
        self.known = set()
        self.panels = []

    def has(self, index):
        return index in self.known

    def among(self, atoms):
        return SmallGram(self.matrix[np.ix_(atoms, atoms)])

    def prefetch(self, atoms):
        self.panels.append(atoms[:8])
        self.known.update(atoms[:8].tolist())

    def row(self, index):
        return self.matrix[index]


@pytest.mark.parametrize("rule", ["prefit", "backfit"])
def test_a_draft_foresees_the_picks(rng, rule):
    """With all atoms in the draft its steps are the true ones, so no row is asked for twice."""
    D = rng.normal(size=(60, 40)) + rng.normal(size=(60, 1))
    y = rng.normal(size=(60, 2))
    gram = Asked(D)
    pursuit = PivotedFactor(gram, (D.T @ y).T, (y * y).sum(axis=0), rule=rule)
    pursuit.extend(24)
    assert [sorted(panel) for panel in gram.panels] == [
        sorted(pursuit.pivots[start : start + 8]) for start in (0, 8, 16)
    ]


@pytest.mark.parametrize(("share", "n"), [(4e-6, 2), (4e-7, 1)])
def test_a_millionth_of_its_squared_length_outside_the_span_is_what_a_function_needs(share, n):
    D = np.array([[1.0, np.sqrt(1 - share)], [0.0, np.sqrt(share)]])
    search = PivotedFactor(
        SmallGram(D.T @ D), np.zeros((1, 2)), np.zeros(1), rule="residual", supervised=False
    )
    search.extend(2)
    assert len(search.pivots) == n
