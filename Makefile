# Two commands matter: `make demo` and `make test`. Both work on a bare clone.
# ARGS are handed on: make demo ARGS=--check · make manage ARGS="states --check" · make test ARGS="-k retry"

ARGS ?=
export PYTHON
PY := .venv/bin/python
UV := .venv/bin/uv
# Any interpreter that runs can start the bootstrap; it then finds one that is new enough.
runs = $(if $(shell $(1) -c 'print(1)' 2>/dev/null),$(1))
BOOT = $(or $(call runs,$(PY)),$(call runs,python3),$(call runs,/usr/bin/python3),python) -I workbench/bootstrap.py

.PHONY: install
install:  ## .venv with everything a developer needs
	@$(BOOT) dev

COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate

.PHONY: lock
lock: install  ## the hashed, host-free locks out of pyproject.toml; UPGRADE=1 takes newer versions
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --extra embedded pyproject.toml -o requirements/run.txt
	@$(COMPILE) $(if $(UPGRADE),--upgrade) --extra embedded --group dev -c requirements/run.txt pyproject.toml -o requirements/dev.txt
	@echo 'uv>=0.13.8,<0.14' | $(COMPILE) $(if $(UPGRADE),--upgrade) - -o requirements/bootstrap.txt
