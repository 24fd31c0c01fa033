# What a person or a machine types. Each target says what it does.
#
#   make run     build and start Tideline on this machine, with three commands to try
#   make test    formatting, lints and every test, those of the pages in a headless Chromium too;
#                what CI runs
#   make check   licences and sources of every dependency
#   make bench   BENCH=history, BENCH=danmaku or BENCH=streams (`tideline-bench --help`)
#   make soak    the long versions of the tests, hours rather than minutes: 1,000 kills and 1,000
#                power cuts of a server where `make test` tries 50 and 100, and five minutes of
#                fuzzing for each decoder

SHELL := /bin/bash
CARGO ?= cargo
# `make run PROFILE=release` builds what you would put into service.
PROFILE ?= dev
# More flags for `make run`, such as ARGS='--data /tmp/t --http 127.0.0.1:8080'.
ARGS ?=
BENCH ?=

PROFILE_DIR := $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

.PHONY: run test check bench soak needs

run: needs
	@scripts/ui.sh build || echo "The pages for browsers were not built (see above); the server runs without them."
	@echo "Building Tideline (profile $(PROFILE)); the first time compiles everything it stands on, which takes a few minutes."
	@$(CARGO) build --locked --profile $(PROFILE) -p tideline-server --bin tideline
	@exec $(TARGET_DIR)/$(PROFILE_DIR)/tideline serve $(ARGS)

test: needs
	$(CARGO) fmt --all --check
	scripts/ui.sh check
	scripts/ui.sh build
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked --workspace
	TIDELINE_PROGRAM=$(abspath $(TARGET_DIR))/debug/tideline scripts/ui.sh browser

check: needs
	@scripts/needs.sh cargo-deny
	$(CARGO) deny --all-features check licenses bans sources

bench: needs
	@$(if $(filter streams%,$(BENCH)),scripts/needs.sh nats-server >/dev/null,scripts/needs.sh $(if $(filter danmaku%,$(BENCH)),nginx,redis-server))
	@$(if $(filter streams%,$(BENCH)),scripts/needs.sh etcd && scripts/needs.sh zookeeper >/dev/null)
	@$(if $(filter danmaku%,$(BENCH)),scripts/needs.sh mariadb)
	$(CARGO) build --locked --release -p tideline-server -p tideline-bench --bin tideline --bin tideline-bench
	$(TARGET_DIR)/release/tideline-bench $(BENCH) $(if $(filter streams%,$(BENCH)),--nats $$(scripts/needs.sh nats-server))

soak: needs
	TIDELINE_SOAK=1 $(CARGO) test --locked --release --workspace
	@scripts/needs.sh cargo-fuzz
	scripts/fuzz.sh 300

needs:
	@scripts/needs.sh
