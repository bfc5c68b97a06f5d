# Two commands matter: `make demo` and `make test`. Both work on a bare clone.
# ARGS are handed on: make demo ARGS=--check · make manage ARGS="states --check" · make test ARGS="-k retry"

ARGS ?=
export PYTHON
# Hundreds of processes import the same modules: what the first has compiled is kept for the others.
export PYTHONDONTWRITEBYTECODE :=
PY := .venv/bin/python
UV := .venv/bin/uv
# Any interpreter that runs can start the bootstrap; it then finds one that is new enough.
runs = $(if $(shell $(1) -c 'print(1)' 2>/dev/null),$(1))
BOOT = $(or $(call runs,$(PY)),$(call runs,python3),$(call runs,/usr/bin/python3),python) -I workbench/bootstrap.py

.PHONY: demo
demo:  ## the product on this machine, until Ctrl-C; ARGS=--check proves it and ends
	@$(BOOT) run
	@exec $(PY) -m workbench.labs.demo $(ARGS)

.PHONY: test
test: install  ## the suite on two workers, each with servers of its own (of looks a sample); ARGS go to pytest
	@exec $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not looks' $(ARGS)

.PHONY: check
check: install  ## lint, types, import law, generated documents, locks
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-logo --no-cache
	@$(PY) manage.py states --check
	@$(PY) -m tools.drills.guide --check
	@$(PY) manage.py requirements --check
	@$(MAKE) --no-print-directory check-locks

.PHONY: drills
drills: install  ## every drill of tests/drills that is not listed as open; ARGS=--json for machines
	@exec $(PY) manage.py drill run tests/drills --but tests/drills/open.txt $(ARGS)

.PHONY: drills-long
drills-long: install  ## the drills of bulks with as many cases as were reported; half an hour and more
	@exec $(PY) manage.py drill run tests/drills/long $(ARGS)

.PHONY: manage
manage:  ## a management command on the demo's servers, whether a demo runs or not: ARGS="COMMAND ..."
	@$(BOOT) run
	@exec $(PY) -m workbench.labs.embedded run -- $(PY) manage.py $(ARGS)

.PHONY: requirements
requirements: install  ## the table of requirements and the tests that prove them
	@$(PY) manage.py requirements

.PHONY: looks
looks: install  ## accessibility of every page, in both lights and both languages, and how narrow it may get
	@exec $(PY) -m pytest tests/browser -k "b25 or b26"

.PHONY: shots
shots: install  ## pictures of every screen, of a demo that is started for them: INTO=folder; URL=http://... takes a running one
	@exec $(PY) -m workbench.labs.shots $(URL) --into $(or $(INTO),shots) $(ARGS)

.PHONY: fmt
fmt: install  ## format and fix what can be fixed
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

.PHONY: install
install:  ## .venv with everything a developer needs
	@$(BOOT) dev

LOCKS ?= requirements
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	$(if $(UPGRADE),--upgrade)

.PHONY: lock
lock: install  ## the hashed, host-free locks out of pyproject.toml; UPGRADE=1 takes newer versions
	@$(COMPILE) pyproject.toml --extra embedded -o $(LOCKS)/run.txt
	@$(COMPILE) pyproject.toml -c $(LOCKS)/run.txt -o $(LOCKS)/production.txt
	@$(COMPILE) pyproject.toml --extra embedded --group dev -c $(LOCKS)/run.txt -o $(LOCKS)/dev.txt
	@echo 'uv>=0.13.8,<0.14' | $(COMPILE) - -o $(LOCKS)/bootstrap.txt

.PHONY: check-locks
check-locks: install  ## the locks say what pyproject.toml says, and name no host
	@! grep -nE '://|^ *--?(index|extra-index|find-links|trusted)' requirements/*.txt
	@copy=$$(mktemp -d) && cp requirements/*.txt $$copy && $(MAKE) --no-print-directory lock LOCKS=$$copy \
	  && diff -r requirements $$copy && rm -r $$copy

SEED ?= 1
MINUTES ?= 10
.PHONY: chaos-soak
chaos-soak: install  ## everything is killed again and again while work goes on, then judged: SEED, MINUTES, ARGS="--json FILE"
	@exec $(PY) manage.py chaos soak --seed $(SEED) --minutes $(MINUTES) $(ARGS)

RUNS ?= 1000
.PHONY: soak
soak: install  ## many runs that fail at a random step, each held against the world outside: RUNS, SEED
	@exec $(PY) manage.py soak --runs $(RUNS) --seed $(SEED) $(ARGS)

.PHONY: long-run
long-run: install  ## a run of 10,000 steps: whether the last one costs what the first did
	@exec $(PY) manage.py bench long-run $(ARGS)

STEPS ?= 1000
.PHONY: pages
pages: install  ## how long 200 cases in the queue and the pages of a long run take, and what they weigh: STEPS
	@exec $(PY) manage.py bench pages --steps $(STEPS) $(ARGS)

.PHONY: chaos-mutants
chaos-mutants: install  ## known bugs are put into the product one by one; each must be found: ARGS="--only NAME"
	@exec $(PY) manage.py chaos mutants $(ARGS)

.PHONY: stateful
stateful: install  ## many more orders of events against the reference model than `make test` plays
	@HYPOTHESIS_PROFILE=long exec $(PY) -m pytest -n0 tests/stateful $(ARGS)

.PHONY: chaos-matrix
chaos-matrix: install  ## a process killed at every point of every kind of call, judged from outside: ARGS="--sample N", "--only CELL"
	@exec $(PY) manage.py chaos matrix $(ARGS)
