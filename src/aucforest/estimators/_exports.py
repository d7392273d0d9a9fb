"""Base classes of the estimators with `encode`, `to_onnx` and `to_sklearn`."""

import os
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucforest.columns.categorical import like
from aucforest.columns.sparse import SparseRows
from aucforest.estimators._calibration import MIN_PROBA
from aucforest.estimators._prediction import TreePrediction
from aucforest.estimators._validation import FeatureModel
from aucforest.exports.onnx import Ensemble, ExportedStack, is_float32, write_onnx
from aucforest.exports.sklearn import CalibratedForestClassifier, as_random_forest
from aucforest.metrics.validation import positive_last
from aucforest.tree.tree import MISSING_CODE


class OnnxExport(FeatureModel):
    """Base of the models that can be exported to ONNX."""

    @property
    def _onnx_model(self) -> Ensemble | ExportedStack:
        """The trees and other parameters of the model, in the form that the export needs."""
        raise NotImplementedError

    def encode(self, X: Any, *, dtype: Any = "float64") -> Any:
        """Return X in the format of the input of exported models: numbers, with codes for categories.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict_proba`.
        dtype : "float64" or "float32", default="float64"
            The type of the numbers, the same as in `to_onnx`.

        Returns
        -------
        ndarray of shape (n_samples, n_split_features), or a table or sparse matrix of the type of X
            The features ``split_features_``. A pandas table keeps its index; treelite and onnxruntime need
            ``np.asarray(encode(X))``. The code of a category is its index in ``categories_``. Missing values and unseen
            categories are NaN.

        Raises
        ------
        ValueError
            If `dtype` is another type, or if `predict_proba` would raise an error for X.
        """
        check_is_fitted(self, "classes_")
        valid = self._features_of(X)
        number_type = np.float32 if is_float32(dtype) else np.float64
        if isinstance(valid, SparseRows):
            return valid.matrix.astype(number_type)
        names = self.split_features_.tolist() if self.expanded_ or self.target_rates_ else None
        return like(X, valid.astype(number_type), names)

    def to_onnx(self, path: str | os.PathLike[str], *, dtype: Any = "float64") -> None:
        """Write the classifier to an ONNX file, including its calibration and threshold.

        A stack is written without the members of weight 0.

        Parameters
        ----------
        path : path-like
            The file to write. The model has one input, ``X`` of shape (n_samples, n_split_features) as returned by
            `encode`, and two outputs, ``label`` of shape (n_samples,) and ``probabilities`` of shape (n_samples,
            n_classes), float32.
        dtype : "float64" or "float32", default="float64"
            The type of ``X``. Use float32 only for software that requires it: rounding can move a value to the other
            side of a threshold.

        Raises
        ------
        ImportError
            If onnx is not installed.
        TypeError
            If labels are not str, bool or numbers of at most 64 bits. For a stack, also if the member "linear" is a
            classifier of another package and its weight is not 0, or if there is a member "old".
        ValueError
            If `dtype` is another type.

        Notes
        -----
        For values that `dtype` represents exactly, probabilities equal those of `predict_proba` up to 1e-6. Labels can
        only differ from `predict` if a probability is within 1e-6 of the threshold, or if two probabilities differ by
        at most 1e-6. The file uses the operators of ONNX 1.12 and ai.onnx.ml 3.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import onnxruntime
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> forest = AUCForestClassifier(20, random_state=0).fit(X, rings >= 18)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "forest.onnx"
        ...     forest.to_onnx(path)
        ...     session = onnxruntime.InferenceSession(path)
        >>> labels, probabilities = session.run(None, {"X": forest.encode(X)})
        >>> bool(abs(probabilities - forest.predict_proba(X)).max() < 1e-6)
        True
        """
        check_is_fitted(self, "classes_")
        threshold, positive = getattr(self, "threshold_", None), positive_last(self)[-1]
        write_onnx(path, self._onnx_model, self.classes_, threshold, positive, dtype)


class TreeExports(OnnxExport, TreePrediction):
    """Base of the models whose trees can be exported."""

    _as_sklearn: ClassVar[Any] = staticmethod(as_random_forest)

    @property
    def _n_codes(self) -> dict[int, int]:
        """The number of codes of each categorical feature."""
        return {feature: min(len(categories), MISSING_CODE) for feature, categories in self.categories_.items()}

    def to_sklearn(self) -> Any:
        """Convert the model to a fitted scikit-learn classifier with the same trees.

        The result is for tools that read scikit-learn's trees, such as `shap.TreeExplainer`, `sklearn.tree.plot_tree`
        or `treelite.sklearn.import_model` (forests only). All of these support missing values.

        Returns
        -------
        CalibratedForestClassifier, RandomForestClassifier, or DecisionTreeClassifier for a tree
            ``predict_proba`` gives the same probabilities, up to 1e-12, on float32 values. A calibrated forest, as by
            default, becomes a `CalibratedForestClassifier`. Pass its ``estimator``, the forest before calibration, to
            tools that read trees.

        Raises
        ------
        ValueError
            If copies of nodes for categorical splits need more than 1.25 GiB. `to_onnx` does not copy nodes.
        NotImplementedError
            If the tree format of the installed scikit-learn differs from that of versions 1.6 to 1.9.

        Notes
        -----
        scikit-learn rounds X to float32, so a value that is very close to a threshold, or equal to it, may go to the
        other side. Thresholds stay float64, so with tools that do not round X, such as treelite, all values go to the
        same side as here. scikit-learn does not accept infinite values. Categories must be passed as codes: see
        `encode`.

        ``predict`` returns the most probable class; for another threshold use
        `sklearn.model_selection.FixedThresholdClassifier`. Shrinkage is included. Impurities and
        ``feature_importances_`` are those of the Gini criterion.

        A categorical split becomes several numeric splits, one for each run of codes that go to the same side. Each run
        gets a copy of the nodes below the split. For the weights of the copies, the samples of a side are assumed to be
        spread evenly over its categories. SHAP values without background data depend on these weights.

        Examples
        --------
        >>> import shap
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> X = X.astype("float32")
        >>> forest = AUCForestClassifier(20, max_depth=6, random_state=0).fit(X, rings >= 18)
        >>> explainer = shap.TreeExplainer(forest.to_sklearn().estimator)
        >>> values = explainer.shap_values(X[:5])[:, :, 1]
        >>> total = values.sum(axis=1) + explainer.expected_value[1]
        >>> before_calibration = forest.to_sklearn().estimator.predict_proba(X[:5])[:, 1]
        >>> bool(abs(total - before_calibration).max() < 1e-9)
        True
        """
        check_is_fitted(self, "trees_")
        model = self._as_sklearn(self.trees_, self.classes_, self._n_codes)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.split_features_
        return model if self._calibration is None else CalibratedForestClassifier(model, self._calibration)

    @property
    def _onnx_model(self) -> Ensemble:
        calibration = self._calibration
        logit_map = None if calibration is None else (calibration.slope, calibration.intercepts, MIN_PROBA)
        return Ensemble(self.trees_, self._n_codes, logit_map)
