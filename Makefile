# Everything that must hold before a change lands; CI runs the same.
.PHONY: check lint types test docs

check: lint types test

lint:
	ruff check .
	ruff format --check .

types:
	mypy

test:
	python -m pytest

docs:
	mkdir -p docs
	python -m searchsvc.serving.page > docs/tools.md
