# The two commands: `make run` and `make test`. Everything else is listed by `make help`.

SWIFT ?= swift
TESTFLAGS ?=
CLIENTFLAGS = --quiet --retries 2 --stall-timeout 2s --header 'Authorization: Bearer judged'
PREFIX ?= /usr/local
DESTDIR ?=
PROGRAMS ?= onward onward-conformance

.PHONY: run test test-unit demo conformance conformance-client build build-packages test-packages watch-packages package-packages \
        image-packages format lint requirements test-thread test-address soak test-framing test-power-loss fuzz test-proxies \
        test-systemd test-browser test-attacks test-clients test-deployment bench-upload bench-takeover bench-commits \
        bench-client bench-memory doc \
        help clean build-static install uninstall test-manual deb test-deb test-image

run: build-packages ## build in release mode and serve on 127.0.0.1:8080, data in ./onward-data
	$(SWIFT) build -c release --product onward
	exec .build/release/onward serve

test: test-packages ## build and run every test
	$(SWIFT) build --build-tests
	SWIFT=$(SWIFT) scripts/run-tests $(TESTFLAGS)
	SWIFT=$(SWIFT) scripts/test-embedding

test-unit: test-packages ## the tests that start no program and repeat nothing by the thousand: a minute after a build
	$(SWIFT) build --build-tests
	SWIFT=$(SWIFT) scripts/run-tests --skip 'EndToEndTests[.]' --skip 'ConformanceKitTests[.]' --skip 'FuzzingTests[.]' \
	  --skip 'PowerLossTests' --skip 'CrashTests' --skip 'FramingDifferentialTests'

demo: build-packages ## half a minute: an upload that is cut and killed, goes on, and comes back whole
	$(SWIFT) build -c release --product onward
	scripts/demo .build/release/onward

build: build-packages ## build everything in release mode
	$(SWIFT) build -c release

build-static: build-packages ## the programs in release mode, with the Swift runtime in them
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/static --product onward
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/static --product onward-conformance

# With sudo there may be no toolchain any more: then what was built before is installed.
install: ## programs, manual, completions, units and documents below PREFIX (/usr/local), behind DESTDIR
	@if command -v $(SWIFT) >/dev/null; then $(MAKE) build-static; fi
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install .build/static/release $(PROGRAMS)

uninstall: ## removes what `make install` put there
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --remove $(PROGRAMS)

test-manual: package-packages ## what mandoc, groff, bash, zsh and fish make of manual and completions
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	scripts/test-manual .build/debug/onward .build/debug/onward-conformance

deb: package-packages ## Debian packages in .build/deb; VERSION for another one than the changelog's
	VERSION='$(VERSION)' scripts/deb

test-deb: package-packages ## the packages' life on clean Debian 12 and 13: install, upgrade, remove, purge
	scripts/deb
	lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
	  .build/deb/*_"$$(dpkg-parsechangelog -S Version)"_*.deb
	VERSION=0.999 scripts/deb
	SWIFT=$(SWIFT) scripts/test-embedding --static-swift-stdlib
	$(SWIFT) build --static-swift-stdlib --scratch-path .build/static --product FramingDifferential
	scripts/test-deb "$$(dpkg-parsechangelog -S Version)" 0.999

test-image: image-packages ## builds and runs the container image, without an engine and without a registry
	scripts/test-image

# In parts: the time of a test includes its wait for a turn, and here everything takes several times as long.
SANITIZED = "--filter EndToEndTests[.][A-L]" "--filter EndToEndTests[.][M-Z]" "--skip EndToEndTests[.]"

test-thread: test-packages ## the tests under ThreadSanitizer
	$(SWIFT) build --build-tests --sanitize thread --scratch-path .build/thread
	set -e; for part in $(if $(TESTFLAGS),"$(TESTFLAGS)",$(SANITIZED)); do \
	  TSAN_OPTIONS="halt_on_error=1" \
	    SWIFT=$(SWIFT) scripts/run-tests --sanitize thread --scratch-path .build/thread $$part; done

test-address: test-packages ## the tests under AddressSanitizer
	$(SWIFT) build --build-tests --sanitize address --scratch-path .build/address
	set -e; for part in $(if $(TESTFLAGS),"$(TESTFLAGS)",$(SANITIZED)); do \
	  ASAN_OPTIONS="detect_leaks=0" \
	    SWIFT=$(SWIFT) scripts/run-tests --sanitize address --scratch-path .build/address $$part; done

test-deployment: watch-packages ## metrics and alert rules, judged by Prometheus' own tool
	$(SWIFT) build --build-tests
	ONWARD_DEPLOYMENT=1 SWIFT=$(SWIFT) scripts/run-tests --filter PromtoolTests

test-systemd: test-packages ## as root: boot systemd in namespaces of its own, and run the service there
	$(SWIFT) build --product onward
	scripts/test-systemd .build/debug/onward

test-browser: ## uploads from pages in headless Chromium (installs Debian's)
	@scripts/system-packages browser
	$(SWIFT) build --build-tests
	ONWARD_BROWSER=1 SWIFT=$(SWIFT) scripts/run-tests --filter BrowserTests

test-attacks: ## slowhttptest with 1,200 connections, and testssl.sh (installs Debian's)
	@scripts/system-packages attacks
	$(SWIFT) build --build-tests
	ONWARD_ATTACKS=1 SWIFT=$(SWIFT) scripts/run-tests --filter 'SlowAttackTests|TLSAuditTests'

test-clients: ## other people's clients through cuts (installs Debian's); ONWARD_TUS_JS=/path/to/tus-js-client for that
	@scripts/system-packages clients
	$(SWIFT) build --build-tests
	ONWARD_CLIENTS=1 SWIFT=$(SWIFT) scripts/run-tests --filter RealClientTests

soak: test-packages ## ten minutes of everything at once with 200 clients
	$(SWIFT) build --build-tests
	ONWARD_SOAK_SECONDS=$${ONWARD_SOAK_SECONDS:-600} ONWARD_SOAK_CLIENTS=$${ONWARD_SOAK_CLIENTS:-200} \
	  SWIFT=$(SWIFT) scripts/run-tests --filter SoakTests

test-framing: build-packages ## ONWARD_CASES (100000) generated connections, compared with a strict reading; ONWARD_SEED
	$(SWIFT) build --product FramingDifferential
	ONWARD_CASES=$${ONWARD_CASES:-100000} .build/debug/FramingDifferential

test-power-loss: build-packages ## ONWARD_HISTORIES (5000) lives of a store, each cut off a dozen times; ONWARD_SEED
	$(SWIFT) build -c release --product PowerLoss
	ONWARD_HISTORIES=$${ONWARD_HISTORIES:-5000} .build/release/PowerLoss

fuzz: test-packages ## libFuzzer and AddressSanitizer, ONWARD_FUZZ_SECONDS (60) for each target; TARGET=NAME for one
	SWIFT=$(SWIFT) Fuzzing/run $(TARGET)

test-proxies: ## HAProxy, Caddy, nginx, Apache, nghttpx (docker/proxies) and Varnish in front of the server
	@scripts/system-packages proxies
	$(SWIFT) build --build-tests
	@dpkg-query -W haproxy caddy nginx apache2 nghttp2-proxy varnish curl 2>/dev/null || true
	ONWARD_PROXIES=1 SWIFT=$(SWIFT) scripts/run-tests \
	  --filter 'EndToEndTests.(ProxyTests|DangerousProxyTests)|ConformanceKitTests.ProxyTests'

bench-upload: build-packages ## 1 GiB by curl, side by side with nginx
	$(SWIFT) build -c release --product onward
	scripts/bench-upload .build/release/onward

bench-takeover: build-packages ## how fast a stuck upload is taken over
	$(SWIFT) build -c release --product onward
	scripts/bench-takeover .build/release/onward

bench-commits: build-packages ## small uploads a second by 1, 16 and 64 clients at once
	$(SWIFT) build -c release --product onward
	scripts/bench-commits .build/release/onward

bench-client: build-packages ## 1 GiB up and down, side by side with curl; memory for 5 GiB
	$(SWIFT) build -c release --product onward
	scripts/bench-client .build/release/onward

bench-memory: build-packages ## resident memory of 2,000 slow uploads
	$(SWIFT) build -c release --product onward
	scripts/bench-memory .build/release/onward

doc: build-packages ## the documentation of the client libraries, in .build/documentation
	scripts/doc

conformance: build-packages ## judge the server by the cases of the draft, from outside
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	.build/debug/onward-conformance server \
	  --start "exec .build/debug/onward serve --root {root} --listen 127.0.0.1:{port} --min-free 0"

conformance-client: build-packages ## judge our own client by the servers that the harness plays
	$(SWIFT) build --product onward
	$(SWIFT) build --product onward-conformance
	.build/debug/onward-conformance client --strict --jobs 8 \
	  --command "XDG_STATE_HOME={state} exec .build/debug/onward put $(CLIENTFLAGS) {file} {url}" \
	  --get-command "XDG_STATE_HOME={state} exec .build/debug/onward get $(CLIENTFLAGS) {url} -o {file}"

requirements: ## which test covers which requirement
	@scripts/requirements all

format: ## format all Swift sources
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests conformance Fuzzing

lint: ## check the format, and the rules of CONTRIBUTING.md
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests conformance Fuzzing
	scripts/check-rules

help:
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build-packages:
	@scripts/system-packages build

test-packages:
	@scripts/system-packages test

watch-packages:
	@scripts/system-packages watch

package-packages:
	@scripts/system-packages package

image-packages:
	@scripts/system-packages image

clean:
	rm -rf .build
