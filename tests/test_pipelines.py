"""Pipelines in model files: scikit-learn's parts by skops, ours as ever."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from pursuit import (
    GreedyNystroem,
    KernelMatchingPursuitClassifier,
    ModelFileError,
    TableModel,
    load,
    model_file,
    save,
)
from pursuit.io import skops_archive

X, y = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[y]

PIPELINES = {
    "ours at the end": make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(8)),
    "ours in the middle": make_pipeline(
        StandardScaler(), GreedyNystroem(n_components=8), LogisticRegression()
    ),
    "pipelines within": Pipeline(
        [("first", make_pipeline(StandardScaler())), ("last", KernelMatchingPursuitClassifier(8))]
    ),
    "columns": make_pipeline(
        ColumnTransformer([("n", StandardScaler(), [0, 1, 2]), ("c", OneHotEncoder(), [3])]),
        "passthrough",
        KernelMatchingPursuitClassifier(8),
    ),
    "scikit-learn alone": make_pipeline(StandardScaler(), LogisticRegression()),
    "a function of NumPy": make_pipeline(
        FunctionTransformer(np.log1p), KernelMatchingPursuitClassifier(8)
    ),
}


@pytest.fixture(scope="module", params=PIPELINES)
def pipeline(request):
    return PIPELINES[request.param].fit(X, Y)


def test_a_saved_pipeline_answers_the_same_bits(pipeline, tmp_path):
    path = tmp_path / "pipe.pursuit"
    save(pipeline, path)
    same = load(path)
    assert type(same) is Pipeline and list(same.named_steps) == list(pipeline.named_steps)
    for method in ("predict", "predict_proba"):
        assert_array_equal(getattr(same, method)(X), getattr(pipeline, method)(X))
    first = path.read_bytes()
    save(same, path)
    assert path.read_bytes() == first


def test_a_pipeline_is_described_and_rounded(tmp_path):
    path = tmp_path / "pipe.pursuit"
    pipeline = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(8)).fit(X, Y)
    save(pipeline, path, dtype="float32", rows=X)
    about = model_file.describe(path)
    assert about["class"] == "Pipeline"
    assert about["params"]["steps"][0] == ("standardscaler", "StandardScaler")
    assert about["params"]["steps"][1][1].startswith("KernelMatchingPursuitClassifier(")
    change = np.abs(load(path).decision_function(X) - pipeline.decision_function(X)).max()
    assert 0 < change == about["rounded"]["largest_change"] < 1e-5


def test_what_skops_does_not_trust_is_refused_in_one_line(tmp_path):
    ours = KernelMatchingPursuitClassifier(8)
    foreign = make_pipeline(FunctionTransformer(_twice), ours).fit(X, Y)
    with pytest.raises(ValueError, match=r"a FunctionTransformer, holds .*_twice.*Use skops\.io"):
        save(foreign, tmp_path / "pipe.pursuit")
    with pytest.raises(ValueError, match="got LogisticRegression; a Pipeline goes, too, and skops"):
        save(LogisticRegression(C=1e-3).fit(X, Y), tmp_path / "pipe.pursuit")
    mine = make_pipeline(type("Mine", (StandardScaler,), {"__module__": "mine"})(), ours).fit(X, Y)
    with pytest.raises(ValueError, match="an object of class Mine"):
        save(mine, tmp_path / "pipe.pursuit")
    assert list(tmp_path.iterdir()) == []


def _twice(X):
    return 2 * X


def test_a_file_with_another_type_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "pipe.pursuit"
    pipeline = make_pipeline(FunctionTransformer(_twice), KernelMatchingPursuitClassifier(8))

    with monkeypatch.context() as patch:
        patch.setattr(skops_archive, "from_skops", lambda content: None)
        save(pipeline.fit(X, Y), path)
    with pytest.raises(ModelFileError, match=r"names the type .*_twice, which is not trusted"):
        load(path)


def test_without_skops_one_line_says_so(tmp_path, monkeypatch):
    path = tmp_path / "pipe.pursuit"
    pipeline = make_pipeline(StandardScaler(), KernelMatchingPursuitClassifier(8)).fit(X, Y)
    save(pipeline, path)
    monkeypatch.setattr("pursuit.io.tree.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"a StandardScaler needs skops: pip install 'pursuit\["):
        save(pipeline, path)
    with pytest.raises(ModelFileError, match="holds a StandardScaler; skops is needed to read it"):
        load(path)


def test_a_table_model_within_a_pipeline_is_refused(tmp_path):
    model = TableModel(3, gamma=0.1, C=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="Layout"):
        save(make_pipeline(FunctionTransformer(), model), tmp_path / "pipe.pursuit")
