"""`python -m bubblefinder`."""

from bubblefinder.cli.app import main

main()
