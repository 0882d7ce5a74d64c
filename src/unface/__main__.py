"""``python -m unface`` is the same as ``unface``."""

from unface.cli import main

if __name__ == "__main__":
    main()
