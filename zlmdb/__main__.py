"""``python -m zlmdb``: see `zlmdb.cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:  # later ones are the command's own
        sys.stderr.write("\nStopped.\n")
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("The command line needs click: pip install 'zlmdb[cli]', or 'zlmdb[demo]' for the demonstration")
    run(prog_name="zlmdb")


if __name__ == "__main__":
    main()
