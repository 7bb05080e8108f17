"""What ``--help`` says of options: sentences that the terminal's width alone breaks."""

import inspect
import re


def in_lines(command):
    """The command, with each option's text in one line of its docstring.

    The parser of the command line keeps a break before an indented line, at which the
    source's width ends, and a terminal breaks what is left once more.

    Args:
      command: a function, whose docstring is replaced.

    Returns:
      The same function.

    Example:
      >>> def greet(name: str):
      ...     '''Greets.
      ...
      ...     Args:
      ...       name: of whoever is greeted, which may well be
      ...         long
      ...     '''
      >>> print(in_lines(greet).__doc__)
      Greets.
      <BLANKLINE>
      Args:
        name: of whoever is greeted, which may well be long
    """
    # Lines of four spaces and more go on with what an argument's line began.
    command.__doc__ = re.sub(r"\n {4,}(?=\S)", " ", inspect.getdoc(command) or "")
    return command
