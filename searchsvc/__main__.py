"""``python -m searchsvc``."""

from searchsvc.cli import main

if __name__ == "__main__":
    main()
