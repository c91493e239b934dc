"""The program: `bubblefinder`, or `python -m bubblefinder`."""

from bubblefinder.ending import end_at_once


def main() -> None:
    """Run the command line, which takes a moment to import."""
    end_at_once()
    from bubblefinder.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
