# The commands that people use. `make up` and `make test` set everything up by themselves.
.PHONY: help setup up test test-real quick nightly lint hooks attacks bench compare chaos fuzz mutants stories months docs screenshots site dashboards safety judgement packages images dist bundle audit lock clean

BIN := .venv/bin
DATA ?= .gpuward
FUZZ_S ?= 60
STORIES ?= 10000
# By the clock, but for the first 2,000; 0: all of STORIES.
STORIES_S ?= 0
MONTHS ?= 100
# Of one processor; 0: all of MONTHS.
MONTHS_S ?= 0
FIRST ?= 1
SEED ?= 1
MINUTES ?= 10
# Tests of real servers wait for processes and clocks: three times as many at a time as a small machine has processors. The others
# compute, and each worker collects all of them first. A file's tests stay together.
test: AT_ONCE := $(or $(WORKERS),3)
test-real: AT_ONCE := $(or $(WORKERS),6)
# Tests of whole processes, real servers and browsers. All others are `make test`.
REAL := tests/real tests/e2e tests/security tests/web
# Which of them: not those that only the nightly run plays (tests/nightly.py); all with MARKS="".
MARKS ?= not nightly
RUN_TESTS = $(BIN)/pytest -rsfE -q -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder -m "$(MARKS)"
PIN := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

help:            ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:           ## the virtual environment with pinned dependencies, and both commands in .venv/bin
	@deploy/dev/setup.sh

up: setup        ## NATS, brain, this machine's agent (shadow mode) and 16 simulated nodes; Ctrl-C stops it
	@$(BIN)/gpuward up --data $(DATA)

# Many container images set it; without compiled files each of the hundreds of processes compiles all of its modules anew.
test test-real quick bench: export PYTHONDONTWRITEBYTECODE :=

test: setup      ## all tests but those of whole sites: ten minutes; as root on Debian or Ubuntu it installs the real components
	@deploy/dev/components.sh
	@$(RUN_TESTS) tests $(addprefix --ignore=,$(REAL))

test-real: setup ## the tests of whole processes, real servers and browsers: the better part of an hour; installs as `make test` does
	@deploy/dev/components.sh
	@$(RUN_TESTS) $(REAL)

quick: setup     ## the tests that need no root and no real component (a minute)
	@$(BIN)/pytest tests -q -n 2 --dist loadfile -m "not root and not slow and not component and not nightly"

nightly:         ## what does not fit into CI, for hours: stories, chaos, fuzzing, mutants, attacks, benchmarks, comparison; PARTS="stories chaos"
	@.ci/nightly $(PARTS)

lint: setup      ## ruff, mypy strict, import rules, gpuward check, and ansible-lint (installed beside)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/gpuward check
	@deploy/dev/ansible_lint.sh

hooks: setup     ## the checks of `make lint` before each commit
	@$(BIN)/pre-commit install

bench: setup     ## the benchmarks of docs/benchmarks.md
	@$(BIN)/python -m tests.benchmarks

compare: setup   ## gpuward beside Prometheus + Alertmanager and ansible-rulebook (docs/benchmarks.md); as root, ten minutes at most
	@deploy/dev/compare.sh
	@timeout 600 $(BIN)/python -m tests.compare

fuzz: setup      ## coverage-guided fuzzing of every parser, FUZZ_S seconds each (installs atheris)
	@deploy/dev/install.sh .venv deploy/dev/fuzz.txt --no-deps
	@mkdir -p .fuzz; for target in kernel_line kernel_log xid job_line cgroup tools journal; do \
		$(BIN)/python -m tests.fuzz $$target $(FUZZ_S) > .fuzz/$$target.log 2>&1 || { tail -40 .fuzz/$$target.log; exit 1; }; \
		echo "$$target: $$(grep number_of_executed_units .fuzz/$$target.log | tr -dc 0-9) inputs, none failed"; \
	done

mutants: setup   ## do the tests notice when the safety core is wrong? All modules, or MODULES="gates" (installs mutmut)
	@deploy/dev/install.sh .venv deploy/dev/mutants.txt
	@$(BIN)/python -m tests.mutants $(MODULES)

stories: setup   ## random stories against the safety laws (docs/safety.md): STORIES of them, from the story FIRST on
	@$(BIN)/python -m tests.laws --stories $(STORIES) --first $(FIRST) --within $(STORIES_S) --workers 2

months: setup    ## random months of random fleets and settings, every safety law watched: MONTHS of them, from the seed FIRST on
	@$(BIN)/python -m tests.months --months $(MONTHS) --first $(FIRST) --within $(MONTHS_S)

attacks: setup   ## regenerates the figures of docs/security.md: plays every attack (some minutes); as root
	@$(BIN)/python -m tests.security

chaos: setup     ## a cell of real processes is killed, stopped, cut off, filled up and lied to for MINUTES, by SEED; as root
	@$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES)

docs: setup      ## regenerates docs/reference.md, docs/api.md, docs/actions.md, deploy/agent.toml and brain/cli/answers.py
	@$(BIN)/python -m docs.generate

screenshots: setup ## the pictures of docs/images, from a real console (needs chromium)
	@$(BIN)/python -m tests.web.screenshots

site: setup      ## the manual, build/site: strict, its links checked (installs mkdocs-material)
	@deploy/dev/site.sh

dashboards: setup ## regenerates deploy/grafana (installs Grafana's builders)
	@deploy/dev/install.sh .venv deploy/dev/grafana.txt --no-deps
	@$(BIN)/python -m docs.dashboards

safety: setup    ## regenerates docs/safety.md: plays its situations (some seconds)
	@$(BIN)/python -m tests.situations --write

judgement: setup ## regenerates docs/judgement.md: plays the stories of simulations/scenarios (a minute)
	@$(BIN)/python -m tests.stories --write

packages: setup  ## dist/: DEB and RPM of agent and brain (docs/install.md)
	@deploy/release/packages.sh

images: setup    ## build/: OCI images of brain and agent (docs/kubernetes.md); as root, with buildah and mmdebstrap
	@deploy/release/images.sh

dist: setup      ## dist/: wheel, source archive, packages, bills of materials, checksums, and signatures by GPUWARD_SIGNING_KEY
	@deploy/release/dist.sh dist packages

bundle: setup    ## dist/: as `make dist`, and one archive of it for sites without a network (docs/install.md)
	@deploy/release/dist.sh dist bundle

audit: setup     ## known vulnerabilities in the pinned dependencies, where the data can be had
	@deploy/release/audit.sh

lock: setup      ## pins the dependencies again
	$(PIN) --all-extras pyproject.toml -o requirements.lock
	$(PIN) -c requirements.lock pyproject.toml -o deploy/release/agent.lock
	$(PIN) -c requirements.lock --extra brain --extra archive pyproject.toml -o deploy/release/brain.lock
	$(PIN) deploy/dev/release.in -o deploy/dev/release.txt
	$(PIN) deploy/dev/site.in -o deploy/dev/site.txt
	$(PIN) deploy/dev/ansible.in -o deploy/dev/ansible.txt
	$(PIN) deploy/dev/compare.in -o deploy/dev/compare.txt

clean:           ## removes .venv and caches; never the data of `make up`
	rm -rf .venv .release .site .ansible-env .ansible .compare .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
