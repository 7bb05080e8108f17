"""The command line. Each command imports what is slow when it runs."""


def main(argv=None) -> int:
    """Runs one command and returns its exit status; see ``jaxanon.cli.app.main``."""
    from jaxanon.cli import app

    return app.main(argv)
