"""Models in files of their own."""

import os
import warnings
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._model_parts import DATA, Part
from aucforest.persistence.model_file import Arrays, write_model
from aucforest.persistence.plain_values import to_plain


class SavedModel:
    """Base of the estimators that `aucforest.load` knows."""

    # What there is to store beside the classes and features.
    _parts: ClassVar[tuple[Part, ...]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model into one file, for `aucforest.load`.

        The file is in safetensors format: arrays and JSON, nothing that is executed. It is written beside `path` and
        renamed, so it is there whole or not at all.

        Parameters
        ----------
        path : path-like
            An existing file is replaced.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError
            For a subclass, or for classes or categories other than text, bools and numbers of at most 64 bits.
        OSError
            When the folder does not exist or cannot be written.

        Warns
        -----
        UserWarning
            For parameters that are not made of numbers, text, lists and dicts, such as a function as `criterion`: they
            are None in the loaded model, which predicts the same but needs them set again before it is fitted anew.

        Notes
        -----
        Out-of-bag probabilities are stored where there are any (``oob_decision_function_``); delete the attribute
        first for a smaller file.

        Examples
        --------
        >>> import tempfile
        >>> import aucforest
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> tree = aucforest.AUCTreeClassifier(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tree.save(f"{folder}/tree.safetensors")
        ...     loaded = aucforest.load(f"{folder}/tree.safetensors")
        >>> bool((loaded.predict_proba(X) == tree.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        if "_parts" not in vars(type(self)):
            raise TypeError(f"a model file holds no {type(self).__name__}: a subclass may know more than is stored")
        arrays: Arrays = {}
        parameters, left_out = _plain_parameters(self)
        metadata = {"estimator": type(self).__name__, "parameters": parameters, "left_out": left_out}
        for part in (DATA, *self._parts):
            more_arrays, more_metadata = part.store(self)
            arrays |= more_arrays
            metadata |= more_metadata
        write_model(path, arrays, metadata)


def _plain_parameters(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters as JSON can hold them, and the names of those that it cannot, with a warning."""
    parameters, left_out = {}, []
    for name, value in model.get_params(deep=False).items():
        try:
            parameters[name] = to_plain(value)
        except TypeError:
            left_out.append(name)
            what = f"{name}={value!r} cannot be stored: set it again before the loaded model is fitted anew"
            warnings.warn(what, stacklevel=3)
    return parameters, left_out
