# Every target sets up .venv first, from the extras in pyproject.toml; a stamp per extra keeps that from being repeated.
# Bytecode of the many modules is left to those that import some of them.
.DEFAULT_GOAL := help
.PHONY: help demo test slow kernels lint format bench picture docs package clean

PYTHON ?= python3.11
# a version manager may offer a command that fails when it is called, so the interpreter is run once
python_works = $(1) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
base_python := $(shell for name in $(PYTHON) python3; do $(call python_works,$$name) && echo $$name && break; done)

bin := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# files to processes, two at least: many tests wait for one core
parallel := --numprocesses logical --maxprocesses 4 --dist loadfile
# all that Sphinx makes: what an earlier build left would not follow the code
pages := docs/_build docs/generated docs/notebooks docs/reference/generated

help:
	@echo "make demo    a forest, its peers and split criteria on a rare class, and a report; results in out/"
	@echo "make test    lint, types, tests and doctests"
	@echo "make slow    the tests marked slow"
	@echo "make lint    ruff, mypy, notebooks without outputs, the workflow file; make format repairs what can be repaired"
	@echo "make bench   the benchmarks, each against its named peer"
	@echo "make picture the pictures of the README and of the pages"
	@echo "make package the sdist, and the wheel with machine code, checked in a clean environment; in dist"
	@echo "make docs    the documentation, in docs/_build/html, notebooks run anew; a warning is an error"

demo: .venv/.demo
	$(bin)/python demo.py

# as many processes as cores: more threads for algebra only wait for each other
test: export OPENBLAS_NUM_THREADS ?= 1
test: export OMP_NUM_THREADS ?= 1
# where it is set, as in many containers, each of some fifty processes would parse all modules anew
test: export PYTHONDONTWRITEBYTECODE =
# The dependencies come first, in the versions that dev has: kernels are compiled while the rest is installed.
test: .venv/.peers
	$(MAKE) --jobs 2 kernels lint
	$(bin)/pytest $(parallel) --doctest-modules src tests

slow: .venv/.dev
	$(bin)/pytest -m slow

# from src, because what is installed beside takes the package away for a moment
kernels: .venv/.peers
	PYTHONPATH=src $(bin)/python -m aucforest warm-up

lint: .venv/.dev
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/nbstripout --verify notebooks/*.ipynb
	$(bin)/mypy
	$(bin)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: .venv/.dev
	$(bin)/ruff check --fix
	$(bin)/ruff format
	$(bin)/nbstripout notebooks/*.ipynb

# before_after.py asks what to compare
bench: .venv/.bench
	set -e; for script in $(filter-out %/before_after.py,$(wildcard benchmarks/[!_]*.py)); do \
		echo "== $$script"; $(bin)/python $$script; done

docs: .venv/.docs
	rm -rf $(pages)
	$(bin)/sphinx-build --quiet --fail-on-warning --builder html docs docs/_build/html

# The wheel is for this Python and machine. Its first calls must not compile.
package: clean_python := build/clean/$(notdir $(bin))/python
package: .venv/.dev
	rm -rf dist build/clean
	$(bin)/python -m build
	$(bin)/twine check --strict dist/*
	$(bin)/python -m venv build/clean
	$(clean_python) -m pip install --quiet dist/*.whl
	$(bin)/python benchmarks/first_calls.py $(clean_python) --rounds 1
	ls -l dist

picture: .venv/.cli
	$(bin)/python benchmarks/front_page.py --draw
	$(bin)/python docs/draw_pages.py

clean:
	rm -rf .venv out build dist $(pages)

.venv/.%: pyproject.toml
	@test -n "$(base_python)" || { echo "no working Python 3.11 or newer: name one with make PYTHON=..." >&2; exit 1; }
	test -d $(bin) || $(base_python) -m venv .venv
	AUCFOREST_PURE=1 $(bin)/python -m pip install --quiet --no-compile --editable ".[$*]"
	touch $@
