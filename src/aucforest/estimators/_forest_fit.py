"""The fit of a forest, step by step: trees, shrinkage, calibration, threshold, out-of-bag score."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from aucforest._caller import warn
from aucforest.columns.categorical import differing_features
from aucforest.columns.expansion import check_same_expanded
from aucforest.columns.target_rates import SETS
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators._calibration import Calibration, calibrate, prior_correction
from aucforest.estimators._class_sample import sample_classes
from aucforest.estimators._decision import DecisionModel
from aucforest.estimators._evidence import (
    PRIOR,
    PRIOR_WITH_RATES,
    OutOfBagSelector,
    amounts_to_score,
    bytes_of_sums,
    row_weight,
    rows_to_score,
)
from aucforest.estimators._intervals import estimate_dispersion, max_dispersion_rows
from aucforest.estimators._mixture import (
    assign_alternatives,
    describe_alternatives,
    drop_small,
    stages_of,
    weights_of_trees,
)
from aucforest.estimators.out_of_bag import is_roc_auc, rows_to_tune_on, score_out_of_bag, warn_of_single_sample
from aucforest.estimators.out_of_bag_pairs import OutOfBagPairs, bytes_of_pairs, rows_to_compare
from aucforest.estimators.threshold_rules import (
    N_GROUPS,
    THRESHOLD_STD_ROWS,
    TunedRule,
    find_positive,
    is_tuned,
    threshold_std,
    warn_of_few_groups,
)
from aucforest.fitting.bootstrap import HALVES, SampleRecord, half_of
from aucforest.fitting.coding import Coding
from aucforest.fitting.out_of_bag import Bags, Sums, TrainingRows, sum_out_of_bag, warn_of_never_out
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.table import TrainingTable
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import possible_encodings
from aucforest.metrics.validation import count_classes
from aucforest.tree.random import HALF_SAMPLES, SPREAD_SAMPLE
from aucforest.tree.tree import Tree


class Start(NamedTuple):
    """The start of a fit: its seed and, with a warm start, the existing trees."""

    seed: int
    before: "ForestFit | None" = None  # a copy of the forest before the fit, None without a warm start
    trees: Sequence[Tree] = ()
    variants: Sequence[tuple[str, str]] = ()  # the criterion and the splitter of each existing tree


class Alternatives(NamedTuple):
    """The names of the variants and of the encodings of trees."""

    variants: list[tuple[str, str]]  # (criterion, splitter); the variants of new trees come first
    n_new: int  # number of variants of new trees
    encodings: tuple[str, ...]  # of columns of many categories


class ForestFit(DecisionModel, TreeBasedClassifier):
    """Base class of the forest with the steps of `fit`."""

    calibration_: Calibration | None
    encodings_: list[str]
    shrinkage_: float
    _groups: NDArray[np.int32] | None = None  # the group of each row of positive weight, if trees sample groups
    _sample_records: list[SampleRecord]  # one for all trees, unless a warm start sampled them in different ways

    def _start(self) -> Start:
        if not (self.warm_start and hasattr(self, "trees_")):
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
            return Start(seed)
        n_trees = len(self.trees_)
        if self.n_estimators < n_trees:
            raise ValueError(
                f"warm_start: n_estimators={self.n_estimators} must be at least {n_trees}, the number of existing trees"
            )
        if self.n_estimators == n_trees:
            warn(f"warm_start: n_estimators={n_trees} trees exist already, no tree is added")
        return Start(self._seed, copy(self), self.trees_, self.variants_)

    def _check_table(self, table: TrainingTable) -> None:
        """Raise ValueError if the training data of a warm start have other features or classes than this forest."""
        n_rates = 0 if self.target_rates_ is None else self.target_rates_.n_features
        n_features = self.trees_[0].n_features - n_rates - len(self._found)
        if n_features != table.n_features:
            raise ValueError(f"warm_start: X has {table.n_features} features, but the existing trees have {n_features}")
        classes, tree_classes = table.target.classes.tolist(), self.classes_.tolist()
        if classes != tree_classes:
            raise ValueError(f"warm_start: y has the classes {classes}, but the existing trees have {tree_classes}")

    def _check_coding(self, coding: Coding, encodings: Sequence[str]) -> None:
        """Raise ValueError unless the training data of a warm start are encoded like those of the existing trees."""
        for feature in differing_features(self.categories_, coding.categories):  # their codes would differ, too
            raise ValueError(f"warm_start: column {feature} has different categories than in the previous fit")
        check_same_expanded(self.expanded_, coding.expanded)
        if (coding.rates is None) != (self.target_rates_ is None) or not set(self.encodings_) <= set(encodings):
            raise ValueError(
                "warm_start: the existing trees read columns of many categories in another way: pass the"
                " categorical_encoding of their fit, or fit all trees again"
            )

    def _calibration_of_training(self) -> Calibration | None:
        """Return the calibration for the class frequencies of the training data, not of `set_prevalence`."""
        if self.calibration_ is None or not hasattr(self, "prevalence_"):
            return self.calibration_
        shift = np.log(self.prevalence_) - np.log(self.class_prior_)
        return self.calibration_._replace(intercepts=self.calibration_.intercepts - shift)

    def _shift_scores(self, shift: NDArray[np.float64]) -> None:
        before = self.calibration_ or Calibration(1.0, np.zeros(len(shift)))
        after = before._replace(intercepts=before.intercepts + shift)
        # After `set_prevalence(None)`, an uncalibrated forest has no calibration again.
        self.calibration_ = None if self.calibration is None and np.ptp(after.intercepts) < 1e-9 else after

    def _fit_rows(self, table: TrainingTable, start: Start) -> None:
        """Grow the trees, then choose shrinkage, calibration and threshold by out-of-bag predictions."""
        target, n_classes = table.target, len(table.target.classes)
        if callable(self.oob_score) and table.sum_rows is not None:
            raise ValueError("oob_score: pass the name of a scorer, as a callable needs all samples in memory")
        rule = self._check_target(target, target.cost)
        warn_of_few_groups(target.few_groups)
        before = start.before
        if before is not None:
            before._check_table(table)
        spec = self._resolve(table, start)
        records = [] if before is None else before._sample_records
        records = list(dict.fromkeys([*records, SampleRecord.of(spec.sampler, len(target.kept_labels))]))
        self._check_sampling(records, n_classes)
        coding = self._code(table, spec)
        encodings = possible_encodings(spec.encodings, coding.rates)
        if before is not None:
            before._check_coding(coding, encodings)
        # To find out-of-bag rows, one sampler draws the samples of all trees again. If trees were sampled in different
        # ways, this is not possible, and shrinkage, mixture and calibration are those of the previous fit.
        reused = before if len(records) > 1 else None
        self._set_sampling(target, start.seed, records)
        # `default` is the calibration if none can be fitted.
        default = prior_correction(spec.sampler, n_classes) if reused is None else reused._calibration_of_training()
        self.calibration_ = None if self.calibration is None else default
        # Without calibration, probabilities are for the class frequencies of the bootstrap samples.
        frequencies = count_classes(target.labels, n_classes, target.sample_weight)
        if self.calibration is None and spec.sampler is not None and len(spec.sampler.sizes) == n_classes:
            frequencies = frequencies * np.nan_to_num(spec.sampler.rates)
        self.class_prior_ = frequencies / frequencies.sum()
        unit = row_weight(spec.weights, target.kept_weight, bootstrap=spec.sampler is not None)
        variants = list(dict.fromkeys([*spec.variant_names, *start.variants]))
        names = Alternatives(variants, len(spec.variant_names), encodings)
        rows: TrainingRows | None = None
        selector: OutOfBagSelector | None = None
        if spec.sampler is not None and reused is None:
            bags = Bags(spec.sampler, tree_keys(spec.seed, range(self.n_estimators)), target.kept)
            rows = TrainingRows(table.X, target.labels, target.sample_weight, bags, table.sum_rows)
        if rows is not None and len(spec.scored) > 0 and self._needs_selector(names.n_new, len(encodings)):
            selector = OutOfBagSelector(
                rows,
                target.rows_at(spec.scored),
                n_classes=n_classes,
                n_variants=len(variants),
                n_encodings=len(encodings),
                amounts=amounts_to_score(self.shrinkage),
                unit=unit,
                calibration=self.calibration_,
                n_jobs=self.n_jobs,
            )
        self.trees_ = self._grow(table, names, start, selector, keep=reused is not None)
        self._shrink(selector, unit, reused)
        self._calibrate(selector, spec)
        if rows is not None and records[0].n_halves:
            self.dispersion_ = self._estimate_dispersion(rows)
        sums = self._set_threshold(rule, rows)
        if self.oob_score and rows is not None and sums is not None:
            self._score_out_of_bag(rows, sums, rule, selector)

    def _set_sampling(self, target: Target, seed: int, records: list[SampleRecord]) -> None:
        """Set the positive class, and the attributes from which bootstrap samples are drawn again."""
        self.pos_label_ = find_positive(self.pos_label, target.classes)
        self._seed, self._sample_records, self._groups = seed, records, target.groups

    def _resolve(self, table: TrainingTable, start: Start) -> FitSpec:
        target, n_classes, n_trees = table.target, len(table.target.classes), self.n_estimators
        spec = FitSpec.resolve(self._params(), target, table.names, table.n_features, start.seed, table.dates)
        if start.before is not None:
            rates, found = start.before.target_rates_, start.before._found
            spec = replace(spec, numbers=range(len(start.trees), n_trees), rates=rates, found=found)
            for column, _ in start.before._integers:
                if len(spec.params.signs) > 0 and spec.params.signs[column] != 0:
                    raise ValueError(f"warm_start: monotonic_cst of column {column} must be 0, as in the previous fit")
        n_encodings = len(spec.encodings) if table.may_have_rates(spec) else 1
        evidence_bytes, scored, compared = 0, spec.scored, spec.compared
        if self.bootstrap and target.has_enough_samples and self._needs_selector(len(spec.variant_names), n_encodings):
            n_variants, n_amounts = len({*spec.variant_names, *start.variants}), len(amounts_to_score(self.shrinkage))
            scored = rows_to_score(target.kept_labels, n_classes, n_variants, start.seed)
            n_variants *= n_encodings
            evidence_bytes = bytes_of_sums(len(scored), n_classes, n_variants, n_amounts, n_encodings)
        if self.bootstrap and is_roc_auc(self.oob_score):
            compared = rows_to_compare(target.kept_labels, n_classes, n_trees, start.seed)
            evidence_bytes += bytes_of_pairs(len(compared), n_classes, n_trees)
        if self.sampling == HALVES:
            evidence_bytes += 8 * (n_classes + 1) * n_trees * max_dispersion_rows(n_trees, n_classes)
        if is_tuned(self.threshold, n_classes):
            # The sums over groups of trees and their stacked copy.
            evidence_bytes += 2 * N_GROUPS * 8 * (n_classes + 1) * min(len(target.kept_labels), THRESHOLD_STD_ROWS)
        # The maximum number of arrays of out-of-bag sums of all rows that are in memory at the same time.
        n_sums = 4 if is_tuned(self.threshold, n_classes) else 3 if self.oob_score else 0
        return replace(spec, scored=scored, compared=compared, n_sums=n_sums, evidence_bytes=evidence_bytes)

    def _needs_selector(self, n_variants: int, n_encodings: int) -> bool:
        """Return whether out-of-bag predictions choose variants, encodings, shrinkage or calibration."""
        return n_variants * n_encodings > 1 or self.shrinkage == "auto" or self.calibration is not None

    def _grow(
        self, table: TrainingTable, names: Alternatives, start: Start, selector: OutOfBagSelector | None, *, keep: bool
    ) -> list[Tree]:
        """Return all trees, the existing ones first. Variants and encodings with a greater AUC get more trees.

        With keep=True, new trees have variants and encodings in the same proportions as the existing trees.
        """
        trees, n_encodings = list(start.trees), len(names.encodings)
        variants = [names.variants.index(variant) for variant in start.variants]
        known = [] if start.before is None else start.before.encodings_
        encodings = [names.encodings.index(encoding) for encoding in known] or [0] * len(trees)

        def grow(numbers: Sequence[int]) -> list[Tree]:
            return table.grow({number: variants[number] * n_encodings + encodings[number] for number in numbers})

        weights, encoding_weights = (np.full(n, 1.0 / n) for n in (names.n_new, n_encodings))
        if keep:
            weights = weights_of_trees(variants, weights, chosen=False)
            # If encodings were chosen, those without trees were dropped and get no trees.
            is_chosen = hasattr(start.before, "encoding_mixture_")
            encoding_weights = weights_of_trees(encodings, encoding_weights, chosen=is_chosen)
        n_alternatives = (names.n_new, n_encodings) if selector is not None else (1, 1)
        for stage in stages_of(*n_alternatives, self.n_estimators):
            n_trees = max(stage.stop, len(trees))
            variants = assign_alternatives(weights, variants, [0] * n_trees, n_trees)
            encodings = assign_alternatives(encoding_weights, encodings, variants, n_trees)
            if len(trees) < stage.stop:
                trees += grow(range(len(trees), stage.stop))
            if selector is None:
                continue
            scored = slice(stage.start, min(stage.stop, selector.n_scored_trees))
            selector.add(stage.start, trees[scored], variants[scored], encodings[scored])
            if stage.stop == self.n_estimators:
                break
            weights, encoding_weights = selector.weigh(weights, encoding_weights)
            if stage.start == 0 and not start.trees:
                encoding_weights = drop_small(encoding_weights)
                remaining = [encoding if encoding_weights[encoding] > 0.0 else None for encoding in encodings]
                if None in remaining:
                    # Trees of dropped encodings are replaced by trees of other encodings.
                    encodings = assign_alternatives(encoding_weights, remaining, variants, n_trees)
                    replaced = [number for number, encoding in enumerate(remaining) if encoding is None]
                    for number, tree in zip(replaced, grow(replaced)):
                        trees[number] = tree
                    selector.add(0, trees, variants, encodings)
                    weights, encoding_weights = selector.weigh(weights, encoding_weights)
        self.variants_ = [names.variants[variant] for variant in variants]
        self.encodings_ = [] if self.target_rates_ is None else [names.encodings[encoding] for encoding in encodings]
        if names.n_new > 1:
            columns = dict(zip(("criterion", "splitter"), zip(*names.variants[: names.n_new])))
            counts = np.bincount(variants, minlength=names.n_new)[: names.n_new]
            oob_scores = None if selector is None else selector.score_alternatives("variant")
            self.mixture_ = describe_alternatives(columns, counts, oob_scores)
        if n_encodings > 1:
            counts = np.bincount(encodings, minlength=n_encodings)
            oob_scores = None if selector is None else selector.score_alternatives("encoding")
            self.encoding_mixture_ = describe_alternatives({"encoding": names.encodings}, counts, oob_scores)
        return trees

    @property
    def _prior_amount(self) -> float:
        """The amount of shrinkage that is used unless another one is clearly better."""
        return PRIOR if set(self.encodings_) <= {SETS} else PRIOR_WITH_RATES

    def _shrink(self, selector: OutOfBagSelector | None, unit: float, reused: "ForestFit | None") -> None:
        """Set `shrinkage_`, and shrink the trees. "auto" uses the shrinkage of `reused`, if this is a forest."""
        if self.shrinkage != "auto":
            self.shrinkage_ = float(self.shrinkage or 0.0)
        elif reused is not None:
            self.shrinkage_ = reused.shrinkage_
        else:
            prior = self._prior_amount
            self.shrinkage_ = prior if selector is None else selector.choose_amount(len(self.trees_), prior)
        self.trees_ = [tree.shrunk(self.shrinkage_ * unit) for tree in self.trees_]

    def _calibrate(self, selector: OutOfBagSelector | None, spec: FitSpec) -> None:
        """If there are out-of-bag samples, fit the calibration for the class frequencies after class weights."""
        if self.calibration is None or selector is None:
            return
        frequencies = self.class_prior_
        if spec.balanced_subsample and spec.sampler is not None:
            # In the sample of a tree, the frequency times the sampling rate is the same for all classes.
            with np.errstate(divide="ignore"):
                frequencies = np.where(frequencies > 0, 1.0 / spec.sampler.rates, 0.0)
        elif spec.class_weights is not None:
            frequencies = frequencies * spec.class_weights
        frequencies = frequencies / frequencies.sum()
        sample = selector.calibration_sample(self.shrinkage_, frequencies)
        self.calibration_ = calibrate(sample, frequencies, self.calibration_, len(self.trees_), self.n_jobs)

    def _estimate_dispersion(self, rows: TrainingRows) -> float:
        n_trees, n_kept = len(self.trees_), rows.bags.sampler.n_rows
        generator = np.random.default_rng([self._seed, HALF_SAMPLES])
        n_rows = min(n_kept, max_dispersion_rows(n_trees, len(self.classes_)))
        sample = np.sort(generator.choice(n_kept, n_rows, replace=False, shuffle=False))
        # The sums over the first range are computed for all rows. They are not used, so this range has only one tree.
        _, *by_tree = self._sum_out_of_bag(rows, [range(1), *(range(i, i + 1) for i in range(n_trees))], sample)
        return estimate_dispersion(by_tree, [half_of(key) for key in rows.bags.keys])

    def _sum_out_of_bag(
        self, rows: TrainingRows, ranges: Sequence[range], sample: NDArray[np.int64] | None = None
    ) -> list[Sums]:
        """Return the out-of-bag sums over each range of trees. Only those over the first have rows outside `sample`."""
        if rows.sum_rows is not None:
            return rows.sum_rows(rows.bags, self._pack(), ranges, sample)
        return sum_out_of_bag(rows, self._in_groups(), ranges, len(self.classes_), self.n_jobs, sample)

    def _set_threshold(self, rule: Any, rows: TrainingRows | None) -> Sums | None:
        """Set the threshold. Return the out-of-bag sums over all trees, or None if they are not needed."""
        n_trees, is_rule_tuned = len(self.trees_), rows is not None and is_tuned(rule, len(self.classes_))
        if not is_rule_tuned:
            self._set_fixed_threshold(rule)
        if rows is None or not (is_rule_tuned or self.oob_score):
            return None
        ranges, kept, sample = [range(n_trees)], rows.bags.kept, None
        if is_rule_tuned:
            bounds = np.linspace(0, n_trees, min(n_trees, N_GROUPS) + 1).astype(np.int64)
            ranges += [range(*pair) for pair in pairwise(bounds)]
            if rows.bags.sampler.n_rows > THRESHOLD_STD_ROWS:
                labels = rows.labels if kept is None else rows.labels[kept]
                sample = sample_classes(labels, 2, THRESHOLD_STD_ROWS // 2, [self._seed, SPREAD_SAMPLE])
        # The sums over all trees are computed separately, because the total of the other ranges has other rounding
        # errors, and a threshold must be equal to the probability of a row.
        forest_sums, *range_sums = self._sum_out_of_bag(rows, ranges, sample)
        if is_rule_tuned:
            self._warn_of_positive(rule)
            tuned = self._rule_on_training(rule, rows.labels, rows.sample_weight)
            self.threshold_ = tuned.require(tuned.best_of_sums(forest_sums, self._mean_of_trees), oob=True)
            stacked = Sums(*map(np.stack, zip(*range_sums)))
            del range_sums  # to save memory
            if sample is not None:
                tuned = tuned.for_sample(sample if kept is None else kept[sample])
            self.threshold_std_ = threshold_std(tuned, stacked, self._mean_of_trees, self._seed)
        return forest_sums

    def _tune_out_of_bag(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._set_threshold(threshold, rows_to_tune_on(self, threshold, X, y, sample_weight))

    def _score_out_of_bag(self, rows: TrainingRows, sums: Sums, rule: Any, selector: OutOfBagSelector | None) -> None:
        """Set the out-of-bag probabilities, which are NaN for rows that are never out of bag, and the score."""
        total, n_trees = sums
        is_oob = n_trees > 0
        proba = np.full_like(total, np.nan)
        proba[is_oob] = self._mean_of_trees(total[is_oob], n_trees[is_oob, None])
        n_kept = rows.bags.sampler.n_rows
        n_never_out = n_kept - int(np.count_nonzero(is_oob))
        warn_of_never_out(n_never_out, n_kept, len(self.trees_), "oob_score_")
        self.oob_decision_function_ = proba
        tuned = TunedRule(rule, rows.labels, rows.sample_weight, self._positive)
        score = score_out_of_bag(self, tuned, proba, rows.without_rates, rows.bags.groups_of)
        if is_roc_auc(self.oob_score):
            is_auto, self.oob_optimism_ = self.shrinkage == "auto", 0.0
            if selector is not None:
                amount = self._prior_amount if is_auto else self.shrinkage_
                self.oob_optimism_ = selector.optimism(len(self.trees_), amount, chooses_amount=is_auto)
            if np.isfinite(score):
                pairs = OutOfBagPairs(self, rows, self.n_jobs)
                score = pairs.correct(score, len(self.trees_), np.flatnonzero(is_oob), proba[is_oob])
                if np.isnan(score):
                    warn_of_single_sample(rows.labels[rows.bags.all_kept], self.classes_)
        self.oob_score_ = score

    def _check_sampling(self, records: list[SampleRecord], n_classes: int) -> None:
        """Raise ValueError if a parameter needs out-of-bag rows, and there are none or they cannot be found."""
        # The calibration corrects for different sampling rates of classes. So these must be the same for all trees.
        by_class = self.calibration is not None and any(len(record.sizes) > 1 for record in records)
        needs = {"oob_score": self.oob_score, "threshold": is_tuned(self.threshold, n_classes), "calibration": by_class}
        sampled = ", ".join(map(str, records))
        for name in [name for name, is_needed in needs.items() if is_needed]:
            given = f"{name}={getattr(self, name)!r}"
            if name != "calibration" and not self.bootstrap:
                raise ValueError(f"{given} needs out-of-bag samples: set bootstrap=True")
            if len(records) > 1:
                for record in records:
                    record.check_stream()  # its message is more specific
                raise ValueError(f"warm_start: {given} needs the same bootstrap sampling for all trees, not {sampled}")
        if self.calibration is not None and len(records) > 1:
            warn(
                "warm_start: shrinkage, mixture and calibration stay, because trees were sampled in different ways:"
                f" {sampled}"
            )
