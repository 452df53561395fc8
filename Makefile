# What people and CI call. `make help` lists it.
CARGO ?= cargo

.PHONY: help test lint demo bench sim mutants fuzz clean

help:
	@echo "make demo     build, import a real tree, list, read, kill, recover, verify, with figures"
	@echo "make test     all tests, lints and documentation checks (what CI runs)"
	@echo "make bench    the figures of docs/benchmarks.md"
	@echo "make sim      one hour of simulation; MINUTES=M to choose"
	@echo "make mutants  break each rule of crash safety and see it caught"
	@echo "make fuzz     run each fuzz target for a minute (needs cargo-fuzz and nightly)"

test: lint
	$(CARGO) test --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib

demo:
	$(CARGO) build --release -p holdall-cli
	./demo.sh

bench:
	$(CARGO) build --release -p holdall-cli -p holdall-bench
	./target/release/holdall-bench all

MINUTES ?= 60
sim:
	$(CARGO) run --release --config profile.release.debug-assertions=true -p holdall-sim -- --minutes $(MINUTES)

mutants:
	$(CARGO) run --release --config profile.release.debug-assertions=true -p holdall-sim -- --mutants testdata/mutations

fuzz:
	cd fuzz && for t in $$(cargo fuzz list); do cargo +nightly fuzz run $$t -- -max_total_time=60 || exit 1; done

clean:
	$(CARGO) clean
