# What people and CI call. `make help` lists it.
CARGO ?= cargo
# What users turn on, and tests do.
ALSO = --features holdall-object-store/bucket

.PHONY: help test laboratory-test lint outside python python-all wheels site demo bench gate soak full-disk peers lab sim mutants bucket-mutants linearizable lab-mutants semver s3-tests s3-clients dav-clients web-test serve-fuzz fuzz clean

help:
	@echo "make demo     build, import a real tree, list, read, kill, recover, verify, with figures"
	@echo "make test     all tests, lints and documentation checks of the product (what CI runs first)"
	@echo "make laboratory-test  the same of laboratory/: the instrument, the workloads, the papers"
	@echo "make python   build the Python package and run its tests; python-all: with dask, datasets, torch"
	@echo "make wheels   wheels for manylinux_2_28, tried on each CPython that is here; target/wheels"
	@echo "make site     these documents as a site: target/site/index.html"
	@echo "make bench    the figures of docs/benchmarks.md"
	@echo "make gate OLD=COMMIT NEW=COMMIT  whether a row became slower by 5 %; NEW may be a folder; ROWS, DIR"
	@echo "make soak     ten storage ages of nearly full volumes, the promises on space asserted"
	@echo "make full-disk  kill processes that fill ext2, ext3, ext4, XFS, Btrfs; needs root"
	@echo "make peers    the workloads beside SQLite, LMDB, redb, fjall, RocksDB (builds C and C++)"
	@echo "make lab      the experiments of the papers; laboratory/target/lab/report.html"
	@echo "make sim      one hour of simulation; MINUTES=M to choose"
	@echo "make mutants  break each rule of crash safety and see it caught"
	@echo "make bucket-mutants  break each rule of stores in buckets and see it caught"
	@echo "make linearizable  SERVER (versitygw, minio, ceph), MINUTES, SEED: real processes under Porcupine (needs Go)"
	@echo "make lab-mutants  break each rule of the papers and see the tests notice"
	@echo "make semver BASE=COMMIT  what of the crates' API would break users of BASE (needs cargo-semver-checks)"
	@echo "make s3-tests CHECKOUT=DIR  ceph/s3-tests against the S3 server"
	@echo "make s3-clients  rclone, restic, aws, s3fs, boto3, Go's SDKs against the S3 server, those installed"
	@echo "make dav-clients litmus, rclone, cadaver, davfs2 against the WebDAV server, those installed"
	@echo "make web-test    the page of the server in headless Chromium; OBJECTS, UPLOAD (MB)"
	@echo "make serve-fuzz  MINUTES (60) of requests with changed bytes to each of PROTOCOLS (s3 webdav the_page)"
	@echo "make fuzz     run each fuzz target for a minute (needs cargo-fuzz and nightly)"

# The Python recipes serve a store with the command that the tests build.
test: lint outside
	$(CARGO) test --workspace $(ALSO)
	$(MAKE) python

# A workspace of its own. HOLDALL names the command that its tests of servers start; without it
# they build one.
laboratory-test:
	cd laboratory && $(CARGO) fmt --all --check
	cd laboratory && $(CARGO) clippy --workspace --all-targets -- -D warnings
	cd laboratory && RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib
	cd laboratory && $(CARGO) test --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(ALSO) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib $(ALSO)
	$(CARGO) xtask tidy

# What is to be published compiles by itself, and so do the fuzz targets; their engine in C++
# (libFuzzer) is left to `make fuzz`.
outside:
	tests/packages.sh
	tests/platforms.sh
	cd fuzz && CARGO_TARGET_DIR=../target/outside $(CARGO) check --quiet --no-default-features

python:
	crates/holdall-python/check.sh

python-all:
	crates/holdall-python/check.sh all

wheels:
	crates/holdall-python/wheels.sh

site:
	[ -x target/site-tools/bin/mkdocs ] || python3 -m venv target/site-tools
	target/site-tools/bin/pip install -q mkdocs-material 'mkdocstrings[python]'
	target/site-tools/bin/mkdocs build --strict --quiet

demo:
	$(CARGO) build --release -p holdall-cli
	./demo.sh

bench:
	cd laboratory && $(CARGO) build --release -p holdall-bench
	./laboratory/target/release/holdall-bench --dir $(DIR) all

# Some 40 minutes, and 10 more for each build that is not there yet. A row's name has spaces:
# ROWS='"w2/8 threads"'.
gate:
	$(CARGO) run --release --manifest-path laboratory/Cargo.toml -p holdall-bench -- --dir $(DIR) gate $(OLD) $(NEW) $(ROWS)

DIR ?= .
AGES ?= 10
AGE = ./laboratory/target/release/holdall-bench --dir $(DIR) age --ages $(AGES) --keep-in-order --check
full-disk:
	HOLDALL_FULL_DISK_ROUNDS=26 $(CARGO) test -p holdall --test full_disk -- --nocapture --test-threads 1

soak:
	cd laboratory && $(CARGO) build --release -p holdall-bench
	missed=0; for full in 85 95 99; do \
		for sizes in small web mixed mib; do \
			echo "$$sizes, $$full % full"; \
			$(AGE) --sizes $$sizes --volume 256 --full $$full || missed=1; \
		done; \
		for size in 200 1000 3000 4200 5000 6000 12400; do \
			echo "$$size bytes, $$full % full"; \
			$(AGE) --sizes same --size $$size --volume 64 --full $$full || missed=1; \
		done; \
	done; exit $$missed

peers:
	cd laboratory && $(CARGO) build --release -p holdall-bench-peers --features rocksdb
	./laboratory/target/release/holdall-bench-peers --dir $(DIR) peers

lab:
	cd laboratory && $(CARGO) run --release -p holdall-lab -- all

MINUTES ?= 60
sim:
	$(CARGO) run --release --config profile.release.debug-assertions=true -p holdall-sim -- --minutes $(MINUTES)

mutants:
	$(CARGO) run --release -p holdall-sim -- --mutants

# ONLY=Hy: those whose name contains it.
bucket-mutants:
	HOLDALL_BUCKET_SEEDS=1..6000 RUSTFLAGS="--cfg holdall_mutations" CARGO_TARGET_DIR=target/mutants \
		$(CARGO) test -p holdall-bucket --test simulation -- --ignored --nocapture

# Ceph keeps a request for longer while a daemon is away: `GRACE=60`.
SERVER ?= versitygw
SEED ?= 1
GRACE ?= 12
linearizable: MINUTES = 10
linearizable:
	tests/linearizable/run.sh $(SERVER) target/servers/$(SERVER) -grace $(GRACE) -seed $(SEED) \
		-seconds $$(($(MINUTES) * 60))

lab-mutants:
	cd laboratory && $(CARGO) test -q -p holdall-lab --test mutants -- --ignored --nocapture

semver:
	$(CARGO) semver-checks --baseline-rev $(BASE) -p holdall -p holdall-object-store -p holdall-opendal

s3-tests:
	tests/s3/s3-tests.sh "$(CHECKOUT)"

s3-clients:
	tests/s3/clients.sh

dav-clients:
	tests/dav/clients.sh

OBJECTS ?= 3000
UPLOAD ?= 100
web-test:
	tests/web/browse.sh $(OBJECTS) $(UPLOAD)

PROTOCOLS ?= s3 webdav the_page
serve-fuzz:
	for protocol in $(PROTOCOLS); do HOLDALL_FUZZ_MINUTES=$(MINUTES) $(CARGO) test -p holdall-server \
		--test serve changed_requests_over_$$protocol -- --nocapture || exit 1; done

fuzz:
	cd fuzz && for t in $$(cargo fuzz list); do cargo +nightly fuzz run $$t -- -max_total_time=60 || exit 1; done

clean:
	$(CARGO) clean
	cd laboratory && $(CARGO) clean
