# Every target sets up .venv by itself, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Many small matrices: one BLAS thread per process, one process per core.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: help demo test mutants lint format docs speed sampler-speed spaces transfer methods-speed study choices more-past twin plateau clean

help: ## Show this list.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip # one that knows --group
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench,report,sheets]' --group dev --group docs --group study
	touch $(READY)

demo: $(READY) ## ScaML-GP finds a twin in its past, beside a plain GP; writes scaml-demo/.
	$(BIN)/scaml demo --out scaml-demo

test: $(READY) ## All tests.
	$(BIN)/python -m pytest --numprocesses auto

mutants: $(READY) ## Apply every deliberate fault in a copy of the source; each must be caught by a test (about ten minutes).
	$(BIN)/python -m tests.mutants

lint: $(READY) ## Format, lint and type check, changing nothing.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## Format, and correct what can be corrected automatically.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## The documentation, with the output of its examples, into build/site (about two minutes).
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

speed: $(READY) ## Measure against BoTorch; writes benchmarks/speed.json (about fifteen minutes).
	$(BIN)/python -m benchmarks.speed

sampler-speed: $(READY) ## Ask-and-tell loops beside Optuna's GPSampler and TPESampler; writes benchmarks/sampler_speed.json.
	$(BIN)/python -m benchmarks.sampler_speed

spaces: $(READY) ## Regret where spaces differ; writes benchmarks/spaces.json (about ten minutes).
	$(BIN)/python -m benchmarks.spaces

transfer: $(READY) ## Old studies of real data against TPE and GP; writes benchmarks/optuna_transfer.json.
	$(BIN)/python -m benchmarks.optuna_transfer

methods-speed: $(READY) ## A step of every ensemble, the training of every network; writes benchmarks/methods_speed.json.
	$(BIN)/python -m benchmarks.methods_speed

study: $(READY) ## The paper's study into results/ (many hours; continues where it was stopped).
	$(BIN)/python -m study paper --figure synthetic --runs 16 --jobs 2 --out results
	$(BIN)/python -m study paper --figure hpo --runs 16 --jobs 2 --out results
	$(BIN)/python -m study paper --figure ablation-tasks --runs 8 --jobs 2 --out results
	$(BIN)/python -m study paper --figure ablation-points --runs 8 --jobs 2 --out results
	$(BIN)/python -m study paper --figure illustration --out results
	$(BIN)/python -m study compact results

choices: $(READY) ## The evidence behind the defaults into results/choices and results/coverage.csv (hours; continues where it was stopped).
	$(BIN)/python -m study ablate svm lr rf xgb mlp fcnet-slice fcnet-protein fcnet-naval fcnet-parkinsons branin hartmann3 hartmann6 --jobs 2 --out results/choices
	$(BIN)/python -m study ablate svm lr rf xgb mlp fcnet-slice fcnet-protein fcnet-naval fcnet-parkinsons branin hartmann3 hartmann6 --methods sqrt-beta=2+residual=paper sqrt-beta=2+weights=normal sqrt-beta=2+residual=paper+weights=normal acquisition=nei+kernel=matern52 gpbo-nei --jobs 2 --out results/choices
	$(BIN)/python -m study ablate related unrelated mirrored shifted one-good outliers units noisy three-points one-flipped seven-good two-groups one-good-99 --methods sqrt-beta=2 acquisition=logei acquisition=lognei acquisition=nei+kernel=matern52 residual=paper gpbo-nei --jobs 2 --out results/choices
	$(BIN)/python -m study ablate unrelated --methods sqrt-beta=2 acquisition=logei acquisition=lognei residual=paper gpbo-nei sqrt-beta=1 acquisition=schedule kernel=matern52 acquisition=nei+kernel=matern52 --runs 64 --jobs 2 --out results/choices
	$(BIN)/python -m study ablate one-good --methods gpbo-nei --runs 64 --jobs 2 --out results/choices
	$(BIN)/scaml bench run related unrelated mirrored shifted one-good outliers units noisy three-points one-flipped seven-good two-groups one-good-99 --methods scaml gpbo-nei scaml-shared --runs 64 --jobs 2 --out results/choices
	$(BIN)/python -m study plot results/choices --figure choices --out results/figures
	$(BIN)/python -m study calibrate --jobs 2 --out results/coverage.csv
	$(BIN)/python -m study compact results/choices --digits 2
	$(BIN)/python -m study compact results

more-past: $(READY) ## Regret over the number of past tasks into results/more-past (hours; continues where it was stopped).
	$(BIN)/python -m study more-past --jobs 2 --out results/more-past
	$(BIN)/python -m study compact results/more-past --digits 2

twin: $(READY) ## How soon the one good past task is found; writes results/twin.parquet.
	$(BIN)/python -m study twin one-good one-good-99 --jobs 2 --out results/twin.parquet

plateau: $(READY) ## Count exceptions in 200 studies of a flat task; writes results/plateau.json.
	$(BIN)/python -m study plateau --jobs 2 --out results/plateau.json

clean: ## Remove everything that make has made.
	rm -rf .venv scaml-demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
