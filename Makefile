# The two commands: `make demo` and `make test`. The others are for those who work on Larder.

BOOK ?=
CARGO ?= cargo
BIN = $(or $(CARGO_TARGET_DIR),target)/release/larder

.PHONY: demo test torture fuzz coverage bench man help

help:
	@echo "make demo [BOOK=file.vcf]   build, and run the main job on the sample address books and calendars (or on your book)"
	@echo "make test                   build and run all tests; prints what it left out, and why"
	@echo "make torture                the long tests: a thousand kill points, full disks, live views, fuzzing"
	@echo "make fuzz SECONDS=600       every fuzz target for that long"
	@echo "make coverage               line coverage by crate"
	@echo "make bench                  the benchmarks under bench/, beside predecessor and floor"
	@echo "make man                    man pages and shell completions into target/man, target/completions"

demo:
	@scripts/prepare.sh build
	@scripts/demo.sh $(BOOK)

test:
	@scripts/prepare.sh test
	@scripts/test.sh

torture:
	@scripts/prepare.sh test
	@torture/kill.sh 1000
	@torture/full-disk.sh
	@torture/views.sh 4000
	@fuzz/run.sh all 600

fuzz:
	@scripts/prepare.sh test
	@fuzz/run.sh all $(or $(SECONDS),600)

coverage:
	@scripts/prepare.sh test
	@scripts/coverage.sh

bench:
	@scripts/prepare.sh build
	@missed=; for script in bench/[TM][0-9]*.sh; do "$$script" || missed="$$missed $$script"; done; \
	[ -z "$$missed" ] || { echo "a goal is missed, or something failed:$$missed"; exit 1; }

man:
	@$(CARGO) build --release --package larder
	@$(BIN) man --out target/man
	@mkdir -p target/completions
	@for shell in bash zsh fish; do $(BIN) completions $$shell > target/completions/larder.$$shell; done
	@echo "target/man, target/completions"
