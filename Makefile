# The course's commands. `make` alone lists them.
PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(PYTHON) workshop/install.py
STACKS ?= --page tests/STACKS.md
# JupyterLab refuses to run as root unless told; in a container one often is root.
ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)

PROXY = test -x .hub/node_modules/.bin/configurable-http-proxy || npm install --silent --prefix .hub configurable-http-proxy@4.6.3 \
	|| { echo "npm installed no configurable-http-proxy; expected Node.js with npm, and internet" >&2; exit 2; }

.DEFAULT_GOAL = help
.PHONY: help lab update wheelhouse jax test gallery test-stacks test-gpu test-hub test-image build check-build lint selftest attacks soak grade room formgrader clean

help:  ## list these commands
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' Makefile | while IFS='|' read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done

lab:  ## install what is missing, then open the course in JupyterLab
	@$(INSTALL) lab
	@$(PYTHON) workshop/lab.py

update:  ## the newest version of the course; your notebooks stay, what is new lies beside them
	@$(PYTHON) workshop/update.py

wheelhouse:  ## fill wheelhouse/ with every package, to install where there is no internet (docs/HOSTING.md)
	$(PYTHON) -m pip download --dest wheelhouse --constraint constraints.txt . 'setuptools>=77' torch triton jax absl-py
	$(PYTHON) -m pip download --dest wheelhouse --constraint constraints.txt --no-deps jax-triton

jax:  ## add JAX on a machine with a GPU (JAX_PACKAGE='jax[...]' chooses the build)
	$(INSTALL) lab jax

# Two workers: a third waits less than it takes. They start many Pythons, which want the course's bytecode. A worker runs a
# whole file, so that what its tests share is made once. The browsers' files take longest, and come first.
test:  ## everything that needs no GPU, but for the galleries
	@$(INSTALL) lab dev
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not gpu" \
		--ignore=tests/test_gallery.py

gallery:  ## known answers, right and wrong: a part, or all, and the page of what each is told (PAGE=VERDICTS.md)
	@$(INSTALL) lab dev
	GALLERY="$(PAGE)" $(BIN)/python -m pytest -q --timeout 3600 tests/test_gallery.py

test-stacks:  ## the galleries with every Triton from 3.4 to 3.9 (STACKS=--reduced: two, and a few answers)
	@$(INSTALL) lab dev
	$(BIN)/python tests/stacks.py $(STACKS)

test-gpu:  ## everything that needs a GPU
	@$(INSTALL) lab dev
	$(BIN)/python -m pytest -m gpu

test-hub:  ## a class in a room, as root: JupyterHub, three attendees and an instructor in browsers
	@$(INSTALL) lab dev hub
	@$(PROXY)
	@PYTHONPATH=tests $(BIN)/python tests/hub/opened.py
	$(BIN)/python -m pytest tests/hub

test-image:  ## an attendee's image that is built already (LAB_IMAGE=…), run and searched for answers
	@$(INSTALL) lab dev
	LAB_IMAGE=$${LAB_IMAGE:-triton-workshop:cpu} $(BIN)/python -m pytest tests/image

build:  ## write notebooks/ from solutions/
	@$(INSTALL) lab
	$(BIN)/autograder build

check-build:  ## fail when notebooks/ is not what solutions/ builds
	@$(INSTALL) lab
	$(BIN)/autograder build --check

lint:  ## ruff
	@$(INSTALL) lab dev
	$(BIN)/ruff check .

selftest:  ## does the judge work on this machine? (PAGE=VERDICTS.md: writes all that learners are told)
	@$(INSTALL) lab
	$(BIN)/autograder selftest $(if $(PAGE),--page "$(PAGE)")

attacks:  ## the hostile answers: each earns nothing and harms nothing
	@$(INSTALL) lab dev
	$(BIN)/python tests/run_attacks.py --fuzz 60000

soak:  ## does a verdict depend on the answer alone? shuffled, beside hostile answers, on a loaded machine
	@$(INSTALL) lab dev
	$(BIN)/python tests/soak.py

grade:  ## make grade FROM=submissions.zip [ROSTER=class.csv]: a whole class, into course/
	@test -n "$(FROM)" || { echo "found no FROM; expected a folder or a zip: make grade FROM=submissions.zip" >&2; exit 2; }
	@$(INSTALL) lab
	$(BIN)/autograder run "$(FROM)" $(if $(ROSTER),--roster "$(ROSTER)")

room:  ## make room [USERS=class.csv] [CHECK=1]: a room on this machine without Docker, as root (docs/HOSTING.md)
	@$(INSTALL) lab hub
	@$(PROXY)
	@PATH="$(CURDIR)/.hub/node_modules/.bin:$$PATH" $(BIN)/python docker/hub/open_room.py $(if $(USERS),--users "$(USERS)") $(if $(CHECK),--check)

formgrader:  ## open nbgrader's formgrader on course/
	@$(INSTALL) lab
	cd course && JUPYTER_CONFIG_PATH="$(CURDIR)/docker/hub/instructor" ROOM="$(CURDIR)" ../$(BIN)/jupyter lab $(ROOT) --ServerApp.ip=127.0.0.1 --LabApp.default_url=/formgrader

clean:  ## remove .venv and caches; grades in course/ stay
	rm -rf .venv .stacks .pytest_cache .ruff_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
