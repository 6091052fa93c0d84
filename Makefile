# Thin names for a bare machine: Python 3.11+, make and git. Everything else is noxfile.py.
#   make snapshot ARGS=text-turn
PYTHON ?= python3
NOX = $(PYTHON) ci/bootstrap.py

.NOTPARALLEL:
.PHONY: test lint tests purity guard snapshot snapshot_agents snapshot_record snapshot_refresh snapshot_review snapshot_view snapshot_init lock bench stress list clean

test:
	$(NOX)

lint tests purity guard snapshot snapshot_agents snapshot_record snapshot_refresh snapshot_review snapshot_view snapshot_init lock bench stress:
	$(NOX) -s $@ -- $(ARGS)

list:
	$(NOX) -l

# Everything git ignores that is ours to remake; the wheelhouse stays.
clean:
	rm -rf .tools .nox .agents .mypy_cache .ruff_cache .pytest_cache .hypothesis .snapshot-actual .snapshot-staging
