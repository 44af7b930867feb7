# Every target sets up .venv by itself, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Many small matrices: one BLAS thread a process, one process a core.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: help demo test lint format docs speed sampler-speed spaces transfer methods-speed study choices clean

help: ## Show this list.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench,docs,report,sheets]'
	touch $(READY)

demo: $(READY) ## ScaML-GP beside a plain GP on the Branin family; writes scaml-demo/.
	$(BIN)/scaml demo --out scaml-demo

test: $(READY) ## All tests.
	$(BIN)/python -m pytest --numprocesses auto

lint: $(READY) ## Format, lint and type check, changing nothing.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## Format and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## The documentation, with the output of its examples, into build/site (about two minutes).
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

speed: $(READY) ## Measure against BoTorch; writes benchmarks/speed.json (about ten minutes).
	$(BIN)/python -m benchmarks.speed

sampler-speed: $(READY) ## Time to suggest beside Optuna's GPSampler; writes benchmarks/sampler_speed.json.
	$(BIN)/python -m benchmarks.sampler_speed

spaces: $(READY) ## Regret where spaces differ; writes benchmarks/spaces.json (about ten minutes).
	$(BIN)/python -m benchmarks.spaces

transfer: $(READY) ## Old studies of real data against TPE and GP, with both kernels; writes benchmarks/optuna_transfer*.json.
	$(BIN)/python -m benchmarks.optuna_transfer
	$(BIN)/python -m benchmarks.optuna_transfer --kernel matern52 --out benchmarks/optuna_transfer_matern.json

methods-speed: $(READY) ## A step of every ensemble, the training of every network; writes benchmarks/methods_speed.json.
	$(BIN)/python -m benchmarks.methods_speed

study: $(READY) ## The paper's study into results/ (many hours; goes on where it was stopped).
	$(BIN)/scaml bench paper --figure synthetic --runs 16 --jobs 2 --out results
	$(BIN)/scaml bench paper --figure hpo --runs 16 --jobs 2 --out results
	$(BIN)/scaml bench paper --figure ablation-tasks --runs 8 --jobs 2 --out results
	$(BIN)/scaml bench paper --figure ablation-points --runs 8 --jobs 2 --out results
	$(BIN)/scaml bench paper --figure illustration --out results

choices: $(READY) ## The evidence behind the defaults into results/choices and results/coverage.csv (hours; goes on where it was stopped).
	$(BIN)/scaml bench ablate svm lr rf xgb mlp fcnet-slice fcnet-protein fcnet-naval fcnet-parkinsons branin hartmann3 hartmann6 --jobs 2 --out results/choices
	$(BIN)/scaml bench ablate svm lr rf xgb mlp fcnet-slice fcnet-protein fcnet-naval fcnet-parkinsons branin hartmann3 hartmann6 --methods sqrt-beta=2+residual=paper sqrt-beta=2+weights=normal sqrt-beta=2+residual=paper+weights=normal acquisition=nei+kernel=matern52 gpbo-nei --jobs 2 --out results/choices
	$(BIN)/scaml bench ablate related unrelated mirrored shifted one-good outliers units noisy three-points --methods sqrt-beta=2 acquisition=logei acquisition=lognei acquisition=nei+kernel=matern52 residual=paper gpbo-nei --jobs 2 --out results/choices
	$(BIN)/scaml bench ablate unrelated --methods sqrt-beta=2 acquisition=logei acquisition=lognei residual=paper gpbo-nei sqrt-beta=1 acquisition=schedule kernel=matern52 acquisition=nei+kernel=matern52 --runs 64 --jobs 2 --out results/choices
	$(BIN)/scaml bench ablate one-good --methods gpbo-nei --runs 64 --jobs 2 --out results/choices
	$(BIN)/scaml bench plot results/choices --figure choices --out results/figures
	$(BIN)/scaml bench calibrate --jobs 2 --out results/coverage.csv

clean: ## Remove what make made.
	rm -rf .venv scaml-demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
