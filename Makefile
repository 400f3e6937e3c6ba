# `make run` and `make test` are the main targets. `make help` lists all of them.

SWIFT ?= swift
TESTFLAGS ?=
BENCHFLAGS ?=
CLIENTFLAGS = --quiet --retries 2 --stall-timeout 2s --header 'Authorization: Bearer example'
PREFIX ?= /usr/local
DESTDIR ?=
PROGRAMS ?= onward onward-conformance

.PHONY: run test test-unit demo conformance conformance-client build build-packages test-packages watch-packages package-packages \
        image-packages format lint requirements test-thread test-address soak test-framing test-power-loss fuzz test-proxies \
        test-systemd test-browser test-attacks test-clients test-deployment test-scale test-engines bench doc \
        help clean build-static install uninstall test-manual deb test-deb test-image

run: build-packages ## build in release mode and serve ./onward-data on 127.0.0.1:8080; Ctrl-C stops it
	$(SWIFT) build -c release --product onward
	exec .build/release/onward serve

# The tests run in three processes. In one process, the tests that wait for PostgreSQL, and the short tests, would occupy the
# threads of Swift concurrency that clients need.
STORAGE = ^(PostgreSQLTests|ObjectStorageTests|ClusterStorageTests)[.]
TESTS = "--skip EndToEndTests[.] --skip $(STORAGE)" "--filter EndToEndTests[.]" "--filter $(STORAGE)"

test: test-packages ## build and run the tests; the targets below run longer ones
	$(SWIFT) build --build-tests
	set -e; for part in $(if $(TESTFLAGS),"$(TESTFLAGS)",$(TESTS)); do SWIFT=$(SWIFT) scripts/run-tests $$part; done
	$(if $(TESTFLAGS),,SWIFT=$(SWIFT) scripts/test-shared-storage short)
	SWIFT=$(SWIFT) scripts/test-embedding
	SWIFT=$(SWIFT) scripts/test-snippets
	SWIFT=$(SWIFT) scripts/doc

test-unit: test-packages ## run only the short tests that start no program (within a minute, plus the build)
	$(SWIFT) build --build-tests
	ONWARD_SHORT=1 SWIFT=$(SWIFT) scripts/run-tests --skip 'EndToEndTests[.]' --skip 'ConformanceKitTests[.]' --skip 'FuzzingTests[.]' \
	  --skip 'PowerLossTests' --skip 'CrashTests' --skip 'FramingDifferentialTests' \
	  --skip 'TransferServerTests[.](DeployedClient|Framing|InterimResponse|Robustness|TusClient)Tests' \
	  --skip 'UploadStorageTests[.](CatalogMigration|Expiry|NameIndex|PublishedListing|SQLiteCatalogStop)Tests' \
	  --skip 'onwardTests[.]SentFilesListTests' --skip '$(STORAGE)'

demo: build-packages ## upload a file with interruptions and a killed client, download it and compare (30 seconds)
	$(SWIFT) build -c release --product onward
	scripts/demo .build/release/onward

build: build-packages ## build everything in release mode
	$(SWIFT) build -c release

build-static: build-packages ## build the programs in release mode with the Swift runtime linked into them
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/static --product onward
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/static --product onward-conformance

# Under sudo the toolchain may be missing. Then the programs of an earlier build are installed.
install: ## install programs, manual pages, completions, units and documents below DESTDIR/PREFIX (/usr/local)
	@if command -v $(SWIFT) >/dev/null; then $(MAKE) build-static; fi
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install .build/static/release $(PROGRAMS)

uninstall: ## remove the files that `make install` installed
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --remove $(PROGRAMS)

test-manual: package-packages ## check manual pages and completions with mandoc, groff, bash, zsh and fish
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	scripts/test-manual .build/debug/onward .build/debug/onward-conformance

deb: package-packages ## build the Debian packages in .build/deb; VERSION overrides the version of the changelog
	VERSION='$(VERSION)' scripts/deb

# The commit of version 0.1.0, whose packages the test upgrades.
FIRST_RELEASE = f7a16e7

test-deb: package-packages ## install, upgrade, remove and purge the packages on clean Debian 12 and 13
	scripts/deb
	lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	  .build/deb/*_"$$(dpkg-parsechangelog -S Version)"_*.deb
	scripts/deb $(FIRST_RELEASE)
	SWIFT=$(SWIFT) scripts/test-embedding --static-swift-stdlib
	$(SWIFT) build --static-swift-stdlib --scratch-path .build/static --product FramingDifferential
	scripts/test-deb 0.1.0 "$$(dpkg-parsechangelog -S Version)"

test-image: image-packages ## build and run the container image with buildah, without Docker and without a registry
	scripts/test-image

# The tests run in parts, because a sanitizer makes them several times slower.
SANITIZED = "--filter EndToEndTests[.][A-L]" "--filter EndToEndTests[.][M-Z]" "--skip EndToEndTests[.] --skip $(STORAGE)" "--filter $(STORAGE)"

test-thread: test-packages ## run the tests under ThreadSanitizer
	$(SWIFT) build --build-tests --sanitize thread --scratch-path .build/thread
	set -e; for part in $(if $(TESTFLAGS),"$(TESTFLAGS)",$(SANITIZED)); do \
	  TSAN_OPTIONS="halt_on_error=1" \
	    SWIFT=$(SWIFT) scripts/run-tests --sanitize thread --scratch-path .build/thread $$part; done

test-address: test-packages ## run the tests under AddressSanitizer
	$(SWIFT) build --build-tests --sanitize address --scratch-path .build/address
	set -e; for part in $(if $(TESTFLAGS),"$(TESTFLAGS)",$(SANITIZED)); do \
	  ASAN_OPTIONS="detect_leaks=0" \
	    SWIFT=$(SWIFT) scripts/run-tests --sanitize address --scratch-path .build/address $$part; done

test-deployment: watch-packages ## check metrics and alert rules with promtool of Prometheus, and the manifests for Kubernetes
	$(SWIFT) build --build-tests
	ONWARD_DEPLOYMENT=1 SWIFT=$(SWIFT) scripts/run-tests --filter PromtoolTests
	scripts/test-kubernetes .build/debug/onward

test-systemd: test-packages ## as root: boot systemd in separate namespaces and run the service there
	$(SWIFT) build --product onward
	scripts/test-systemd .build/debug/onward

test-browser: ## upload from pages in headless Chromium and Firefox (installs the packages of Debian)
	@scripts/system-packages browser
	@scripts/install-axe
	$(SWIFT) build --build-tests
	ONWARD_BROWSER=1 SWIFT=$(SWIFT) scripts/with-interface scripts/run-tests --filter BrowserTests

test-attacks: ## run slowhttptest with 1,200 connections, and testssl.sh (installs the packages of Debian)
	@scripts/system-packages attacks
	$(SWIFT) build --build-tests
	ONWARD_ATTACKS=1 SWIFT=$(SWIFT) scripts/run-tests --filter 'SlowAttackTests|TLSAuditTests'

test-clients: ## run other clients with interruptions (installs packages); ONWARD_TUS_JS=/path/to/tus-js-client adds tus-js-client
	@scripts/system-packages clients
	$(SWIFT) build --build-tests
	ONWARD_CLIENTS=1 SWIFT=$(SWIFT) scripts/run-tests --filter RealClientTests

test-scale: ## run several servers with PostgreSQL, SeaweedFS, PgBouncer and HAProxy (installs the packages of Debian, and SeaweedFS)
	@scripts/system-packages scale
	@scripts/install-seaweedfs
	$(SWIFT) build --build-tests
	@# This test measures percentiles of times, so it runs alone.
	ONWARD_SCALE=1 SWIFT=$(SWIFT) scripts/run-tests --filter 'ClusterTests/takeOver'
	ONWARD_SCALE=1 SWIFT=$(SWIFT) scripts/run-tests \
	  --filter '$(STORAGE)|EndToEndTests[.](Cluster|Migration|Redirection)' --skip 'ClusterTests/takeOver'
	ONWARD_SCALE=1 SWIFT=$(SWIFT) scripts/run-tests --filter '^UploadStorageTests[.]' --skip '[.](PowerLossTests|CrashTests)/'
	SWIFT=$(SWIFT) scripts/test-shared-storage all
	scripts/test-scale page .build/debug/onward
	scripts/test-scale compose .build/debug/onward

test-engines: ## store objects in OpenStack Swift and in Ceph, and kill servers that use them (installs the packages of Debian)
	@scripts/system-packages engines
	@scripts/install-seaweedfs
	$(SWIFT) build --build-tests
	ONWARD_ENGINES=1 SWIFT=$(SWIFT) scripts/run-tests --filter 'ObjectStorageTests[.]EngineTests|ClusterFaultTests/kills'

soak: test-packages ## run all operations concurrently with 200 clients for ten minutes
	$(SWIFT) build --build-tests
	ONWARD_SOAK_SECONDS=$${ONWARD_SOAK_SECONDS:-600} ONWARD_SOAK_CLIENTS=$${ONWARD_SOAK_CLIENTS:-200} \
	  SWIFT=$(SWIFT) scripts/run-tests --filter SoakTests

test-framing: build-packages ## compare the server and a strict parser on ONWARD_CASES (100000) generated connections; ONWARD_SEED is the first seed
	$(SWIFT) build --product FramingDifferential
	ONWARD_CASES=$${ONWARD_CASES:-100000} .build/debug/FramingDifferential

test-power-loss: build-packages ## run ONWARD_HISTORIES (5000) histories of a store with power losses; ONWARD_SEED is the first seed
	$(SWIFT) build -c release --product PowerLoss
	ONWARD_HISTORIES=$${ONWARD_HISTORIES:-5000} .build/release/PowerLoss

test-kills: test-packages ## kill the client, its store of transfers, and the server with events at every operation on a file
	$(SWIFT) build --build-tests
	ONWARD_KILLS=all SWIFT=$(SWIFT) scripts/run-tests --filter 'StoreCrashTests|RecipeTests/fileOperations|SeveralFilesTests/fileOperations|GatewayEventKillTests'

fuzz: test-packages ## run libFuzzer with AddressSanitizer, ONWARD_FUZZ_SECONDS (60) for each target; TARGET=NAME for one
	SWIFT=$(SWIFT) Fuzzing/run $(TARGET)

test-proxies: ## test HAProxy, Caddy, nginx, Apache, nghttpx (docker/proxies) and Varnish in front of the server
	@scripts/system-packages proxies
	$(SWIFT) build --build-tests
	@dpkg-query -W haproxy caddy nginx apache2 nghttp2-proxy varnish curl 2>/dev/null || true
	ONWARD_PROXIES=1 SWIFT=$(SWIFT) scripts/run-tests \
	  --filter 'EndToEndTests.(ProxyTests|DangerousProxyTests)|ConformanceKitTests.ProxyTests'

# For example: make bench BENCHFLAGS='small takeover --runs 3'. `scripts/bench --help` has the options.
bench: ## compare the server and the client with nginx, curl and cp (20 minutes, 20 GiB); BENCHFLAGS selects parts
	@scripts/system-packages bench
	@case ' $(BENCHFLAGS) ' in *' browsers '*) scripts/system-packages browser ;; esac
	$(SWIFT) build -c release --product onward
	scripts/bench .build/release/onward $(BENCHFLAGS)

doc: build-packages ## render the documentation of the libraries to .build/documentation
	scripts/doc

conformance: build-packages ## test the server with the cases of the conformance harness
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	.build/debug/onward-conformance server \
	  --start "exec .build/debug/onward serve --root {root} --listen 127.0.0.1:{port} --min-free 0"

conformance-client: build-packages ## test the client with the scripted servers of the conformance harness
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	.build/debug/onward-conformance client --strict --jobs 8 \
	  --command "XDG_STATE_HOME={state} exec .build/debug/onward put $(CLIENTFLAGS) {file} {url}" \
	  --get-command "XDG_STATE_HOME={state} exec .build/debug/onward get $(CLIENTFLAGS) {url} -o {file}"

requirements: ## list the tests of each requirement
	@scripts/requirements all

format: ## format all Swift sources
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests conformance Fuzzing

lint: ## check the format and the rules of CONTRIBUTING.md
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests conformance Fuzzing
	scripts/check-rules --self-test

help:
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build-packages:
	@scripts/system-packages build

test-packages:
	@scripts/system-packages test
	@scripts/install-seaweedfs || echo "Tests of several servers are skipped, because SeaweedFS cannot be installed."

watch-packages:
	@scripts/system-packages watch

package-packages:
	@scripts/system-packages package

image-packages:
	@scripts/system-packages image

clean:
	rm -rf .build
