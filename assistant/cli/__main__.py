"""`python -m assistant.cli` does what `crosstalk` does."""

from assistant.cli import main

if __name__ == "__main__":
    main()
