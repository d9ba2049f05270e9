# Users need `make install`, `make demo` and `make test`; the other targets are for development.

BOOK ?=
CARGO ?= cargo
RELEASE = $(or $(CARGO_TARGET_DIR),target)/release
BIN = $(RELEASE)/larder
INSTALLED = $(or $(CARGO_INSTALL_ROOT),$(CARGO_HOME),$(HOME)/.cargo)/bin

.PHONY: install demo test torture fuzz coverage bench man help

help:
	@echo "make install                install larder, with the library of \`larder measure record\`, to $(INSTALLED)"
	@echo "make demo [BOOK=file.vcf]   build, and show the main features on the sample files (or on your address book)"
	@echo "make test                   build and run all tests; lists tests that were left out, with the reason"
	@echo "make torture [STEPS=...]    attacks on the store: power cuts, kills, I/O errors, bit flips, ... (torture/README.md)"
	@echo "make fuzz SECONDS=600       run each fuzz target for that many seconds"
	@echo "make coverage               print line coverage by crate"
	@echo "make bench                  benchmarks in bench/, against evolution-data-server and plain SQLite"
	@echo "make man                    write manual pages and shell completions to target/man, target/completions"

# `cargo install` installs programs only, and without `--locked` takes other versions of libraries than were tested.
install:
	@$(CARGO) install --locked --path crates/cli
	@$(CARGO) build --locked --release --package larder-alloclog
	@install -m 755 $(RELEASE)/liblarder_alloclog.so "$(INSTALLED)"

demo:
	@scripts/prepare.sh build
	@scripts/demo.sh $(BOOK)

test:
	@scripts/prepare.sh test
	@scripts/test.sh

torture:
	@scripts/prepare.sh test
	@torture/run.py $(STEPS)

fuzz:
	@scripts/prepare.sh test
	@fuzz/run.sh all $(or $(SECONDS),600)

coverage:
	@scripts/prepare.sh test
	@scripts/coverage.sh

bench:
	@scripts/prepare.sh build
	@missed=; for script in bench/[TM][0-9]*.sh; do "$$script" || missed="$$missed $$script"; done; \
	[ -z "$$missed" ] || { echo "these benchmarks missed a goal or failed:$$missed"; exit 1; }

man:
	@$(CARGO) build --release --package larder
	@$(BIN) man --out target/man
	@mkdir -p target/completions
	@for shell in bash zsh fish; do for program in larder git-cinnabar; do \
		$(BIN) completions $$shell --program $$program > target/completions/$$program.$$shell; done; done
	@echo "target/man, target/completions"
