# A thin front for cmake, ctest and the scripts. SPDX-License-Identifier: MIT
BOOTSTRAP ?= scripts/bootstrap -y
PREFIX ?= /usr/local
BUILD = build/release

.PHONY: help demo study program build check fault-campaign fuzz bench format lint install package clean

help:
	@echo 'make demo     install what is missing, build, train a Vision Transformer on Fashion-MNIST with two workers'
	@echo 'make study    the same, then the paper'"'"'s experiments in miniature, with a report (about 20 minutes; goes on where it stopped)'
	@echo 'make check    install what is missing, build, run every test'
	@echo 'make fault-campaign   a hundred kills at random moments, and the same bits in the end (SEED=1 KILLS=100)'
	@echo 'make fuzz     feed damaged files to every parser, each for FUZZ_SECONDS=60 (clang)'
	@echo 'make bench    measure speed, side by side with PyTorch where that is installed'
	@echo 'make build    only build, into $(BUILD); make program leaves tests and benchmarks out'
	@echo 'make lint     layout, warnings of gcc and clang, static analysis'
	@echo 'make format   lay out the sources with clang-format'
	@echo 'make install  program, library, headers, manual pages and examples into PREFIX=$(PREFIX)'
	@echo 'make package  Debian packages, into build/package/packages'
	@echo 'make clean    remove build/ (runs/ stays)'
	@echo
	@echo 'BOOTSTRAP=true skips the package step: make demo BOOTSTRAP=true'

# Without tests and benchmarks: half the time.
program:
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target program

build:
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo:
	@$(BOOTSTRAP) build demo
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target program_here
	@scripts/demo

study:
	@$(BOOTSTRAP) build demo
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target program_here
	@scripts/study

# Tests at once: many of them only wait.
CHECK_JOBS ?= 2
check:
	@$(BOOTSTRAP) build demo
	@$(MAKE) --no-print-directory build
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --parallel $(CHECK_JOBS)

SEED ?= 1
KILLS ?= 100
fault-campaign: build
	@for ranks in 1 2; do \
		scripts/fault-campaign --program $(BUILD)/bin/mural --seed $(SEED) --kills $(KILLS) --ranks $$ranks --others '1 2 4' || exit 1; \
	done

FUZZ_SECONDS ?= 60
fuzz:
	@$(BOOTSTRAP) build checks
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz
	@scripts/fuzz --seconds $(FUZZ_SECONDS)

bench:
	@$(BOOTSTRAP) build demo
	@$(MAKE) --no-print-directory build
	@bench/run.sh

lint:
	@$(BOOTSTRAP) build checks
	@scripts/lint

format:
	@$(BOOTSTRAP) checks
	@scripts/format

install: program
	@cmake --install $(BUILD) --prefix $(PREFIX)

package:
	@$(BOOTSTRAP) build package
	@cmake --preset package -DMURAL_CUDA_ARCHITECTURES="$${MURAL_CUDA_ARCHITECTURES:-75;80;86;89;90}" >/dev/null
	@cmake --build --preset package
	@cd build/package && cpack

clean:
	rm -rf build
