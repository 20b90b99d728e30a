# SPDX-License-Identifier: Apache-2.0
# `make` alone lists what there is. Prerequisites: root, git, make and Go; what else a target needs it installs, or says how to get.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
DESTDIR ?=
PREFIX  ?= /opt/cni/bin
SBIN    ?= /usr/local/bin

NEED    := e2e/lab/need
GOBUILD := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
TESTRUN := go run ./e2e/testrun $(if $(PKG),-pkg '$(PKG)') $(if $(RUN),-run '$(RUN)') $(if $(COUNT),-count '$(COUNT)') $(if $(FULL),-full) $(if $(V),-v)

.PHONY: help
help:
	@echo 'Targets (PKG=name and RUN=regexp narrow the tests, COUNT=n repeats guest tests on one boot, V=1 shows all they print):'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r t h; do printf '  %-12s %s\n' "$$t" "$$h"; done

.PHONY: build
build: ## build bin/podfabric and bin/podfabricctl, static
	@$(NEED) go git
	$(GOBUILD) -o bin/ ./cmd/...

.PHONY: demo
demo: build ## the story: two pods, soft RoCE, real bandwidth, in an emulated node (two minutes)
	@$(NEED) root amd64 go
	e2e/demo/run

.PHONY: test
test: ## every test: host (with -race), network namespaces, emulated node
	@$(NEED) root amd64 go gcc ip strace
	$(TESTRUN) -race

.PHONY: test-unit
test-unit: ## the tests that need nothing
	@$(NEED) go gcc
	$(TESTRUN) -env host -race

.PHONY: test-netns
test-netns: ## the tests that make network namespaces of this machine's kernel
	@$(NEED) root go gcc ip strace
	$(TESTRUN) -env netns -race

.PHONY: test-lab
test-lab: ## the tests that run in the emulated node
	@$(NEED) root amd64 go
	$(TESTRUN) -env guest

.PHONY: test-kill
test-kill: ## kill the plugin everywhere, in the emulated node; FULL=1: everywhere and with every aftermath (hours)
	@$(NEED) root amd64 go
	e2e/test-kill $(if $(RUN),-run '$(RUN)') $(if $(FULL),-full) $(if $(V),-v)

.PHONY: lab
lab: ## build the emulated node (once, two minutes; cached outside the checkout)
	@$(NEED) root amd64
	e2e/lab/mkroot

.PHONY: lab-shell
lab-shell: build ## a shell in the emulated node, with VFs, RDMA devices and podfabric on PATH
	@$(NEED) root amd64
	e2e/lab/boot --terminal --file bin --script e2e/lab/shell

.PHONY: lint
lint: ## golangci-lint and go vet, with the guest's tests
	@$(NEED) go
	go vet ./...
	go vet -tags lab ./...
	"$$(.ci/tools/lint)" run

.PHONY: fmt
fmt: ## put the Go code into the one format
	@$(NEED) go
	"$$(.ci/tools/lint)" fmt

.PHONY: cover
cover: ## statement coverage, and its thresholds
	@$(NEED) go
	.ci/tools/cover

.PHONY: fuzz
fuzz: ## every fuzz target, FUZZTIME (30s) each
	@$(NEED) go
	.ci/tools/fuzz

.PHONY: bench-start
bench-start: build ## what a start of the plugin costs, beside an empty Go program and macvlan
	@$(NEED) go
	e2e/bench-start

.PHONY: install
install: build ## into DESTDIR: the plugin to PREFIX (/opt/cni/bin), podfabricctl to SBIN (/usr/local/bin)
	@# By rename, so that a runtime never executes half a file, nor is refused because the old one is running.
	install -d '$(DESTDIR)$(PREFIX)' '$(DESTDIR)$(SBIN)'
	install -m 755 bin/podfabric '$(DESTDIR)$(PREFIX)/.podfabric.new'
	mv -f '$(DESTDIR)$(PREFIX)/.podfabric.new' '$(DESTDIR)$(PREFIX)/podfabric'
	install -m 755 bin/podfabricctl '$(DESTDIR)$(SBIN)/.podfabricctl.new'
	mv -f '$(DESTDIR)$(SBIN)/.podfabricctl.new' '$(DESTDIR)$(SBIN)/podfabricctl'

.PHONY: ci
ci: ## all that CI runs
	.ci/run

.PHONY: clean
clean: ## remove bin and coverage; the lab's cache stays
	rm -rf bin cover.out
