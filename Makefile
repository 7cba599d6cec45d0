# Each target sets up what it needs; each works the second time too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The clients of model providers for Node, with which the proxy is tested.
NODE_CLIENTS := tests/server/proxy/node/node_modules/.package-lock.json

.PHONY: install demo test proof pages sdk-suite faults audit secrets system system-proof lint bench docs lock

install: $(READY)

# The packages are exactly those of the lock, so that a fresh machine gets what was tested. uv installs them in
# seconds. It does not read pip's configuration, so where it cannot reach an index, pip installs the same.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) "$$(grep '^uv==' requirements.lock)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock || $(PIP) -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(READY)

# Strands and CrewAI need an mcp below 2, and our server a newer one. Their tests run in an environment of their own.
MCP1 := .venv-mcp1
$(MCP1)/.ready: requirements-mcp1.lock pyproject.toml $(READY)
	$(PYTHON) -m venv $(MCP1)
	$(BIN)/uv pip install --quiet --python $(MCP1)/bin/python -r requirements-mcp1.lock || \
	  $(MCP1)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-mcp1.lock
	$(MCP1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(READY)
	$(BIN)/recollect demo

# Many tests wait for processes of their own, so there is one more at a time than most machines have cores.
test: system $(READY) $(MCP1)/.ready $(NODE_CLIENTS)
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not proof" --ignore tests/faults --ignore tests/server/proof

# The rest of the tests: short forms of the long campaigns, the whole service under attack, second drivers.
proof: system-proof $(READY) $(MCP1)/.ready $(NODE_CLIENTS) pages
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "proof and not campaign" --ignore tests/pages

# The examples of every page of the documentation, from the wheel, each after the install line of its page.
pages: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadgroup tests/pages

# The SDK's own session tests with our classes. It downloads the SDK's sources, so it is no part of the tests.
sdk-suite: $(READY)
	$(BIN)/python -m tests.sdk_suite

# The long form of the proof, about 40 minutes: its results are docs/reliability.md.
faults: system-proof $(READY) $(MCP1)/.ready $(NODE_CLIENTS)
	$(BIN)/python -m pytest -n 3 --dist loadfile -m campaign
	$(BIN)/python -m tests.faults --keep

# Ends with 0 only if every package was looked up; where no advisory service can be reached, with 2.
audit: $(READY)
	$(BIN)/python -m tests.security.audit

secrets: $(READY)
	$(BIN)/python -m tests.security.secrets

# The programs that tests need, in tests/system.py. It comes first: what is missing is said before any download.
system:
	@$(PYTHON) -m tests.system test
system-proof:
	@$(PYTHON) -m tests.system proof

$(NODE_CLIENTS): tests/server/proxy/node/package-lock.json | $(READY)
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix $(dir $<)
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/mkdocs build --strict --quiet
	@echo "the documentation is in site/index.html"

# Takes the newest versions that pyproject.toml allows; run it by hand, then run the tests.
lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-annotate --no-header \
	  --extra all --group dev --output-file requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-annotate --no-header \
	  --extra crewai --extra strands --extra encrypt --extra postgres --group mcp1 --output-file requirements-mcp1.lock pyproject.toml
