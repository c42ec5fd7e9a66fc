# Everything here needs Go, git, make and a C compiler (for the race detector), and nothing else: no Docker, no root, no
# download beside Go modules. Tools have a module of their own, config/tools.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
# As the control plane is built, so that what both use is compiled once; the race detector alone needs a C compiler.
export CGO_ENABLED = 0
.DEFAULT_GOAL := help

TOOL = go tool -modfile=$(CURDIR)/config/tools/go.mod
LINT = $(TOOL) golangci-lint-kube-api-linter run
LAB_LOG = bin/lab-build.log

# What the binaries say when they are asked for their version; a release sets it.
VERSION ?= v0.0.0-dev

COUNT ?= 1
RUN ?= .

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the manager and the lab into bin/
	go build -ldflags '-X pawl.dev/pawl/cmd/internal/version.number=$(VERSION)' -o bin/ ./cmd/...
	cd e2e/lab && go build -o ../../bin/lab ./cmd/lab

# Of the other systems of a release this is the one that differs most.
.PHONY: windows
windows: ## compile what is shipped for Windows
	GOOS=windows GOARCH=amd64 go build ./cmd/...

.PHONY: generate
generate: ## write all that is generated: deepcopy, CRDs, RBAC, the Helm chart, docs
	$(TOOL) controller-gen object crd paths=./api/... output:crd:dir=config/crd
	$(TOOL) controller-gen rbac:roleName=pawl paths='./controllers/...;./cmd/pawl/...' output:rbac:dir=config/rbac
	cd config/release && go run ./chart
	go generate ./...

.PHONY: verify-generate
verify-generate: ## fail if generate would change anything
	@state() { git ls-files -z --cached --others --exclude-standard | LC_ALL=C sort -zu | xargs -0 sha256sum 2>/dev/null || true; }; \
	before=$$(state); $(MAKE) generate; \
	diff <(echo "$$before") <(state) || { echo "make generate changed the files above: add them to the commit" >&2; exit 1; }

.PHONY: lint
lint: ## run the linters, with those for APIs on api/
	$(LINT) ./...
	$(LINT) -c .golangci-api.yml ./api/...
	cd e2e/lab && $(LINT) -c ../../.golangci.yml ./...
	cd config/release && $(LINT) -c ../../.golangci.yml ./...

# A copy of the database will do: VULNDB=file:///path. Exit 1 with these words is a database that cannot be reached: nothing
# was looked up then, which fails as well, unless VULN=where-reached says that the rest of the run is wanted all the same.
# CI does, and a release does not.
VULNDB ?= https://vuln.go.dev
.PHONY: vuln
vuln: ## fail if a vulnerability that is known can be reached from what is shipped, or if the database of them cannot be reached
	@said=$$($(TOOL) govulncheck -db '$(VULNDB)' ./cmd/... 2>&1) && status=0 || status=$$?; echo "$$said"; \
	case "$$status $$said" in \
	"0 "*) ;; \
	"1 "*"fetching vulnerabilities"*) echo "make vuln: NOT CHECKED for vulnerabilities: no database was reached. Run it again where it is, before a release" >&2; \
	  [ '$(VULN)' = where-reached ] ;; \
	*) exit $$status ;; esac

# What may be linked into a program under Apache-2.0. Other systems link other modules.
LICENCES = Apache-2.0,MIT,BSD-2-Clause,BSD-3-Clause,ISC,MPL-2.0
.PHONY: licences
licences: ## fail if a module in what is shipped has another licence than is allowed, or none that is known
	@go build -modfile=config/tools/go.mod -o bin/ github.com/google/go-licenses/v2
	@for os in linux darwin windows; do \
	  said=$$(GOOS=$$os bin/go-licenses check --allowed_licenses='$(LICENCES)' ./cmd/... 2>&1) || { echo "$$said" | grep -v '^W\|^/' >&2; exit 1; }; \
	  echo "licences of what is linked for $$os: all of $(LICENCES)"; \
	done

# The linters run go vet with all its checks; a test would vet every dependency again.
.PHONY: unit
unit: ## run the tests that need no cluster; with the race detector where the product works side by side
	go test -vet=off -timeout 20m ./api/... ./cmd/... ./config/... ./statemachine/...
	CGO_ENABLED=1 go test -vet=off -race -timeout 20m ./controllers/... ./e2e/demo/...
	cd e2e/lab && go test -vet=off ./...
	cd config/release && go test -vet=off -count=1 ./... # what it reads is outside of its module: no result is kept

.PHONY: model
model: ## go through every world of the model checker, with its whole budgets; make unit goes through part of each
	MODEL=whole GOGC=400 go test -vet=off -count=1 -run 'TestModel$$' -v -timeout 60m ./statemachine

.PHONY: test
test: ## run everything; from a fresh clone most of the time goes into building
	@$(MAKE) build
	@echo "building the control plane in the background, see $(LAB_LOG)"; \
	{ bin/lab build && $(MAKE) prometheus helm; } >$(LAB_LOG) 2>&1 & lab=$$!; trap 'kill $$lab 2>/dev/null || true' EXIT; \
	$(MAKE) verify-generate; $(MAKE) lint; $(MAKE) windows snapshot licences; $(MAKE) vuln VULN=where-reached; $(MAKE) unit; \
	echo "waiting for the control plane"; wait $$lab || { cat $(LAB_LOG); exit 1; }
	@STORIES=half $(MAKE) stories
	@$(MAKE) demo

.PHONY: stories
stories: build lab-build prometheus helm ## run the stories on a real control plane; COUNT=n repeats them, RUN=regex picks some, STORIES=half halves their settings
	cd e2e && go test -vet=off -count=$(COUNT) -run '$(RUN)' -parallel 16 -timeout 80m

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## run each fuzz test for half a minute; FUZZTIME=10m for longer. make unit runs their seeds only
	@grep -rEo '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|/[^/]*:func | |' | while read -r package name; do \
	  go test -vet=off -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
	done

KILLS ?= 1
.PHONY: kills
kills: build lab-build ## kill the manager at each write, and in stories S1 to S9 at one that the lot decides; KILLS=n is another lot
	cd e2e && KILLS=$(KILLS) go test -vet=off -count=1 -run 'TestKills$$|TestS[1-9][A-Z]' -parallel 14 -timeout 80m

.PHONY: bench
bench: ## how long a decision and a gate take, compared by benchstat
	@results=$$(mktemp); trap 'rm -f "$$results"' EXIT; \
	go test -vet=off -run '^$$' -bench 'Decide|Ask|Compile' -benchtime 0.3s -count 6 ./statemachine ./controllers/gate >"$$results"; \
	go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da "$$results"

FAULTS ?= 1
.PHONY: faults
faults: build lab-build prometheus helm ## run the stories with an API that fails at random; FAULTS=n is another lot, RUN=regex picks some
	cd e2e && FAULTS=$(FAULTS) go test -vet=off -count=1 -run '$(RUN)' -parallel 12 -timeout 90m

SOAK ?= 30m
.PHONY: soak
soak: build lab-build ## random rollouts of 50 StatefulSets for half an hour, with faults and kills, then make kills; SEED=n takes the same lots again
	cd e2e && SOAK=$(SOAK) go test -vet=off -count=1 -run 'TestSoak$$' -timeout 90m -v
	@$(MAKE) kills

.PHONY: picture
picture: build lab-build prometheus ## draw docs/dashboard.svg anew, from what the Prometheus of a story answers
	cd e2e && PICTURE=$(CURDIR)/docs/dashboard.svg go test -vet=off -count=1 -run 'TestS14Blocked/OrderedReady/admission'

.PHONY: prometheus
prometheus: ## build Prometheus and promtool from Go modules, for the stories about alerts; a few minutes the first time
	@echo "building Prometheus and promtool"; mkdir -p bin
	cd e2e/prometheus && go build -tags remove_all_sd -ldflags='-s -w' -o ../../bin/ \
	  github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool

.PHONY: image
image: ## build the image of the manager into bin/, without Docker: an OCI archive for amd64 and arm64, and its SBOM
	@mkdir -p bin; cd config/release && go run ./image -version '$(VERSION)'

.PHONY: image-twice
image-twice: image ## build it again from a copy elsewhere, and fail if one byte is another
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; mkdir "$$copy/source" "$$copy/bin"; \
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$$copy/source"; \
	cd "$$copy/source/config/release" && go run ./image -version '$(VERSION)' -out "$$copy/bin/pawl-image"; \
	cmp "$$copy/bin/pawl-image.tar" $(CURDIR)/bin/pawl-image.tar; cmp "$$copy/bin/pawl-image.spdx.json" $(CURDIR)/bin/pawl-image.spdx.json

.PHONY: image-run
image-run: build lab-build ## run the image in containerd, as the Deployment says, against a lab; as root, with containerd and runc of the system
	cd config/release && go run ./image -arch "$$(go env GOARCH)" -out ../../bin/pawl-image-here
	e2e/containerd.sh bin/pawl-image-here.tar

GORELEASER = go run github.com/goreleaser/goreleaser/v2@v2.15.4

# All six systems take ten minutes more from empty caches.
.PHONY: snapshot
snapshot: ## build what is released for this system into dist/ with goreleaser
	$(GORELEASER) check
	$(GORELEASER) build --snapshot --single-target --clean

.PHONY: release-check
release-check: licences vuln image-twice ## build all of a release into dist/ with goreleaser, and publish nothing; 15 minutes the first time
	$(GORELEASER) check
	$(GORELEASER) release --snapshot --clean
	config/release/check.sh dist

.PHONY: helm
helm: ## build Helm from Go modules, for the stories about installing; a few minutes the first time
	@echo "building Helm"; mkdir -p bin
	cd config/release && go build -o ../../bin/ helm.sh/helm/v4/cmd/helm

.PHONY: demo
demo: build lab-build ## watch a rollout go wrong and be put right
	go run ./e2e/demo

.PHONY: run
run: build ## run the manager here, on the cluster of $PAWL_KUBECONFIG; more flags in ARGS
	@[ -n "$${PAWL_KUBECONFIG:-}" ] || { echo "make run: PAWL_KUBECONFIG is not set; set it to the kubeconfig of the cluster to use" >&2; exit 1; }; \
	exec bin/pawl run-local --log-format console --health-probe-address 0 --metrics-bind-address 0 $(ARGS)

.PHONY: lab-build
lab-build: build ## build the control plane from Go modules; about 9 minutes the first time
	bin/lab build

.PHONY: lab-up
lab-up: build ## start a control plane with played nodes, and Pawl in it, in .lab/; what ran there before is ended
	@bin/lab up --dir .lab >/dev/null
	@bin/lab add pawl --dir .lab --ready 'http://127.0.0.1:{port}/readyz' -- \
	  env PAWL_KUBECONFIG=.lab/kubeconfig bin/pawl run-local --log-format console \
	  --health-probe-address '127.0.0.1:{port}' --metrics-bind-address 0 || { bin/lab down --dir .lab; exit 1; }
	@printf '%s\n' "Pawl is at work in a control plane of its own. To use it from here:" "" \
	  "  export KUBECONFIG=$$PWD/.lab/kubeconfig" \
	  "  .lab/kubectl get rolloutprogress -A" "" \
	  "A first StatefulSet: .lab/kubectl apply -k config/samples" \
	  "A good image:        .lab/kubectl set image statefulset/web web=registry.example/web:2" \
	  "One that is bad:     .lab/kubectl set image statefulset/web web=registry.example/web:bad" \
	  "What Pawl says:      bin/lab logs -f pawl" \
	  "The end of it:       make lab-down"

.PHONY: lab-down
lab-down: build ## end both
	bin/lab down --dir .lab

.PHONY: clean
clean: ## end the lab and remove what was built
	[ ! -x bin/lab ] || bin/lab down --dir .lab
	rm -rf bin .lab
