# The interface of this repository. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
# Stamps say what is installed, so that a second run installs nothing.
USE := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
WITH_SITE := $(VENV)/.installed-site
WITH_RELEASE := $(VENV)/.installed-release

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)

# A build of torch for the CPU is enough, and a tenth of the size. Where this index does not answer, torch
# comes from where pip looks otherwise; with an empty TORCH_INDEX, which is for a GPU, as well.
TORCH_INDEX := https://download.pytorch.org/whl/cpu

.PHONY: help demo test test-all test-fast test-lowest lint bench bench-peers attacks mutants margins seeds build prove docs site release deps-system clean

help:
	@echo "make demo      grade the sample class of examples/class/ and show each verdict"
	@echo "make test      the tests; of the largest sets a tenth, which depends on the commit"
	@echo "make test-all  every test, for the night"
	@echo "make test-fast  every test that is not slow; about a minute"
	@echo "make test-lowest  those tests with the oldest dependencies that are supported"
	@echo "make lint      ruff, mypy --strict, import layers"
	@echo "make bench     how fast, as ratios measured in one run"
	@echo "make bench-peers  against otter-grader, nbgrader and others, on growing classes; an hour"
	@echo "make attacks   attack the grader and plain pytest, and keep the table in docs/attacks.md"
	@echo "make mutants   mutate the references, and see whether the suites notice; half an hour"
	@echo "make margins   train each reference that trains with twenty seeds; twenty minutes"
	@echo "make seeds     whether a verdict or a name depends on the seed; over an hour"
	@echo "make build     write exercises/ from reference/"
	@echo "make docs      bring the verdicts, tables and screenshots of the pages up to date"
	@echo "make site      the pages, the statements and a graded class as a site in build/site/"
	@echo "make release   build, check and list what is published; says what is left for a person to do"
	@echo "make prove     prove the course's content, and judge all programs of others and a sample of mutants"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(USE): $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@test -z "$(TORCH_INDEX)" || $(PIP_INSTALL) --no-deps --retries 1 --timeout 20 \
	    --index-url $(TORCH_INDEX) torch 2>/dev/null || true
	$(PIP_INSTALL) -e .
	@touch $@

$(DEV): $(USE) pyproject.toml $(CONSTRAINTS)
	$(PIP_INSTALL) -e ".[dev]"
	@touch $@

$(WITH_SITE): $(DEV) pyproject.toml $(CONSTRAINTS)
	$(PIP_INSTALL) -e ".[site]"
	@touch $@

$(WITH_RELEASE): $(DEV) pyproject.toml $(CONSTRAINTS)
	$(PIP_INSTALL) -e ".[release]"
	@touch $@

demo: $(USE)
	@echo "Grading the sample class of examples/class/ (its README says what is in each)"
	@echo "As a student would: $(BIN)/grader check examples/class/s002"
	@rm -rf build/demo
	@$(BIN)/grader batch examples/class --out build/demo || test $$? -eq 1

# More processes than cores, because tests also wait; the order is that of tests/conftest.py.
PYTEST = $(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder
unexport PYTHONDONTWRITEBYTECODE  # or each of many processes compiles everything again

# Where tests may not be skipped, with what builds the site.
test: $(if $(CI),$(WITH_SITE),$(DEV))
	TURN=$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1) $(PYTEST) $(TESTS)

test-all: $(if $(CI),$(WITH_SITE),$(DEV))
	$(PYTEST) $(TESTS)

test-fast: $(DEV)
	$(PYTEST) --numprocesses 2 -m "not slow"

# The oldest release of each dependency that pyproject.toml allows, apart from theirs.
LOWEST := .venv-lowest
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python --resolution lowest-direct -e ".[dev]"
	$(LOWEST)/bin/python -m pytest --numprocesses 2 --dist loadfile -m "not slow"

# What students run, on Windows and macOS as well.
STUDENTS := $(addprefix -m grader., __main__ commands.check commands.watch commands.practice \
	commands.init commands.handout commands.new commands.build jupyter authors testing \
	grading.grader grading.plugin sandbox.worker.spawned submissions.reader_process.spawned)

# A change of platform empties the cache of mypy, so each platform has its own.
PLATFORMS := types-win32 types-darwin
.PHONY: types $(PLATFORMS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --jobs 2 types $(PLATFORMS)
	$(BIN)/lint-imports

types: $(DEV)
	$(BIN)/mypy
	MYPYPATH=tests:benchmarks $(BIN)/mypy benchmarks/*.py
	MYPYPATH=tests:benchmarks $(BIN)/mypy benchmarks/peers/*.py

$(PLATFORMS): types-%: $(DEV)
	$(BIN)/mypy --cache-dir .mypy_cache/$* --platform $* $(STUDENTS)

bench: $(USE)
	$(BIN)/python benchmarks/bench.py

bench-peers: $(DEV)
	$(BIN)/python benchmarks/peers.py --write
	$(BIN)/python benchmarks/scale.py --write
	$(BIN)/python benchmarks/cores.py --write

attacks: $(DEV)
	$(BIN)/python -W ignore tests/attacks/table.py --write

mutants: $(DEV)
	$(BIN)/python -W ignore tests/mutants/table.py --write --each

margins: $(DEV)
	$(BIN)/python -W ignore tests/corpus/margins.py --write

seeds: $(DEV)
	$(BIN)/python -W ignore tests/corpus/seeds.py

build: $(USE)
	$(BIN)/grader build

# All of it even if a part has problems; what is kept on this machine is not proven again.
PROOFS = "$(BIN)/grader validate" \
	"$(BIN)/python -W ignore tests/corpus/accuracy.py --write" \
	"$(BIN)/python -W ignore tests/corpus/copies.py --write" \
	"$(BIN)/python -W ignore tests/mutants/sampled.py"
prove: $(DEV)
	@failed=0; for proof in $(PROOFS); do echo "$$proof"; $$proof || failed=1; done; exit $$failed

docs: $(DEV)
	$(BIN)/python docs/build.py
	$(BIN)/python -W ignore docs/screenshots.py

site: $(WITH_SITE)
	$(BIN)/python docs/website.py

# The files of a release in dist/, with their hashes and what they are built to run with. Somebody's
# work in exercises/ would be among them, so these have to be current.
release: $(WITH_RELEASE)
	$(BIN)/grader build --check
	rm -rf dist build/release && mkdir -p build/release
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python -c 'from grader.commands.own_wheel import pins; print(pins(), end="")' \
	    >build/release/pins.txt
	$(BIN)/cyclonedx-py requirements build/release/pins.txt --pyproject pyproject.toml \
	    --output-reproducible --output-file dist/sbom.cdx.json
	cd dist && sha256sum -- * >SHA256SUMS
	@cat dist/SHA256SUMS
	@echo
	@echo "Left for a person to do:"
	@echo "  1. In CHANGELOG.md, name the version and its date in place of Unreleased."
	@echo "  2. Tag the commit, and attach everything in dist/ to the release."
	@echo "  3. To publish it on an index: $(BIN)/twine upload dist/*.whl dist/*.tar.gz"

# What tests ask of the system: to become an ordinary user, the kernel's own numbers, a browser.
SYSTEM := util-linux linux-libc-dev chromium
deps-system:
	@command -v setpriv >/dev/null && command -v unshare >/dev/null && command -v chromium >/dev/null \
	    && test -f /usr/include/asm-generic/unistd.h \
	    || { apt-get update -qq && apt-get install -y -qq --no-install-recommends $(SYSTEM); }

clean:
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache
