"""All private parts of scikit-learn that the package uses, which may change in any version."""

# ruff: noqa: F401, other modules import these names

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._missing import is_pandas_na
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions, validate_parameter_constraints
from sklearn.utils._pprint import _changed_params as changed_params
from sklearn.utils.validation import _check_monotonic_cst as check_monotonic_cst
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as num_samples
