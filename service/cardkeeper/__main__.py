"""`python -m cardkeeper`."""

from cardkeeper.cli import main

main()
