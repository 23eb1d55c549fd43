# Everything that must hold before a change lands; CI runs the same.
.PHONY: check lint types test

check: lint types test

lint:
	ruff check .
	ruff format --check .

types:
	mypy

test:
	python -m pytest
