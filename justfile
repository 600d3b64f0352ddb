# Tasks for people who work on the project: `just` lists them.
python := ".venv/bin/python"
quick := "not slow and not heavy"

# List the tasks.
default:
    @just --list

# A virtual environment with everything, in .venv.
setup:
    python3 -m venv .venv
    .venv/bin/pip install -q -c .ci/constraints.txt -e '.[dev]'

# Lint, types and tests.
check: lint test

# Style, format, types, workflow files.
lint:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy
    .ci/workflows .venv/bin

# The tests; `just test tests/cli` for some of them.
test *args:
    {{ python }} -m pytest -q {{ args }}

# The tests that take less than .15 s: two processors are a minute at it.
quick *args:
    {{ python }} -m pytest -q -n auto --dist loadfile -m "{{ quick }}" {{ args }}

# The changes of the code that tests must notice: `just mutants`, `just mutants sample FILE`.
mutants *args="named":
    {{ python }} scripts/mutate.py {{ args }}

# Every number of the package against the stored ones; `just numbers write` after a wanted change.
numbers *args="check":
    {{ python }} scripts/stored_numbers.py {{ args }}

# The tests, with their line coverage; fails below the floor in pyproject.toml.
coverage:
    {{ python }} -m pytest -q --cov --cov-report=term

# The documentation site, in docs/_build/html.
docs:
    .venv/bin/sphinx-build -W --keep-going -b html docs docs/_build/html

# The site built and walked in a browser, as CI does.
site:
    .ci/site {{ python }} docs/_build/walked

# Kernel timings by pytest-benchmark; --benchmark-compare against an earlier run.
bench *args:
    {{ python }} -m pytest -q scripts/bench --benchmark-only --benchmark-autosave {{ args }}

# Source archive and wheel in dist, checked.
package:
    PATH="$PWD/.venv/bin:$PATH" .ci/package dist

# What CI runs.
ci:
    .ci/run
