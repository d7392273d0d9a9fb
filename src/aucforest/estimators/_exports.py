"""Fitted trees in the formats of other libraries."""

import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators._prior_correction import LEAST
from aucforest.exports.onnx import LogitCorrection, write_onnx
from aucforest.exports.sklearn import PriorCorrectedClassifier, as_random_forest
from aucforest.tree.tree import MISSING_CODE


class Exports(TreeBasedClassifier):
    """What a fitted classifier becomes elsewhere."""

    _as_sklearn: ClassVar[Any] = staticmethod(as_random_forest)

    def _n_codes(self) -> dict[int, int]:
        """Return how many codes each categorical feature has."""
        return {feature: min(len(categories), MISSING_CODE) for feature, categories in self.categories_.items()}

    def encode(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return X as exported models read it: codes for categories, all numbers rounded to float32.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
            Of categorical features the places of the values in ``categories_``, the last one 254; NaN for missing and
            unseen ones.
        """
        check_is_fitted(self, "trees_")
        encoded: NDArray[np.float32] = self._validate_X(X, reset=False).astype(np.float32)
        return encoded

    def to_sklearn(self) -> Any:
        """Return the same trees as a fitted classifier of scikit-learn, for what reads these.

        Such as `shap.TreeExplainer`, `treelite.sklearn.import_model` (which reads forests only) or
        `sklearn.tree.plot_tree`. Missing values go to their learned sides in all of them.

        Returns
        -------
        RandomForestClassifier, DecisionTreeClassifier for a tree, or PriorCorrectedClassifier
            ``predict_proba`` gives the same probabilities, to 1e-12, on rows of float32 values. The last one comes of a
            forest that corrects probabilities for draws of classes at different rates: no forest of scikit-learn can
            hold that. Its ``estimator`` is one without the correction, for what reads trees.

        Raises
        ------
        ValueError
            If copies of nodes, for sets of categories, take more than 1.25 GiB. `to_onnx` does not copy nodes.
        NotImplementedError
            With a version of scikit-learn whose trees have other nodes than those of versions 1.6 to 1.9.

        Notes
        -----
        scikit-learn rounds X to float32 before it compares, so values that differ from a threshold by less than that
        may go to its other side. It refuses infinite values. Categories are read as codes: see `encode`.

        ``predict`` takes the most probable class; `sklearn.model_selection.FixedThresholdClassifier` holds another
        threshold. Shrunk predictions are what leaves hold. Impurities are Gini's, and so are ``feature_importances_``.

        A set of categories becomes a threshold for each of its runs of codes, and what hangs below is copied for each;
        the weights of copies assume that rows spread evenly over the categories on a side, which SHAP values
        that follow the weights of trees see (those against background data do not).

        Examples
        --------
        >>> import shap
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> X = X.astype("float32")
        >>> forest = AUCForestClassifier(20, max_depth=6, random_state=0).fit(X, rings >= 18)
        >>> explainer = shap.TreeExplainer(forest.to_sklearn())
        >>> values = explainer.shap_values(X[:5])[:, :, 1]
        >>> total = values.sum(axis=1) + explainer.expected_value[1]
        >>> bool(abs(total - forest.predict_proba(X[:5])[:, 1]).max() < 1e-9)
        True
        """
        check_is_fitted(self, "trees_")
        model = self._as_sklearn(self.trees_, self.classes_, self._n_codes())
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model if self._prior_correction is None else PriorCorrectedClassifier(model, self._prior_correction)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier as ONNX, prior correction and threshold included.

        Parameters
        ----------
        path : path-like
            The file; it is written whole or not at all. It has one input, ``X`` of shape (n_samples, n_features),
            float32, where NaN is missing and categories are codes (see `encode`), and two outputs, ``label`` of shape
            (n_samples,) and ``probabilities`` of shape (n_samples, n_classes), float32.

        Raises
        ------
        ImportError
            Without the package onnx: ``pip install aucforest[onnx]``.
        TypeError
            For labels other than str, bool or numbers of at most 64 bits.

        Notes
        -----
        Probabilities are those of `predict_proba` on the same float32 values, to 1e-6; labels are those of `predict`
        where no two classes are as near to a tie. The operators are those of ONNX 1.12 and ai.onnx.ml 3.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import onnxruntime
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> X = X.astype("float32")
        >>> forest = AUCForestClassifier(20, random_state=0).fit(X, rings >= 18)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "forest.onnx"
        ...     forest.to_onnx(path)
        ...     session = onnxruntime.InferenceSession(path)
        >>> labels, probabilities = session.run(None, {"X": X})
        >>> bool(abs(probabilities - forest.predict_proba(X)).max() < 1e-6)
        True
        """
        check_is_fitted(self, "trees_")
        correction = self._prior_correction
        plain = None if correction is None else LogitCorrection(correction.exponent, correction.offsets, LEAST)
        threshold = getattr(self, "threshold_", None)
        write_onnx(path, self.trees_, self.classes_, self._n_codes(), plain, threshold)
