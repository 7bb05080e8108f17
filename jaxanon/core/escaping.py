"""Escaping of names from data: lines of text, Markdown tables and shell words.

File names are escaped by ``jaxanon.datasets.writing.file_name``, HTML by the templates,
CSV by the ``csv`` module, and formulas in figures are off.
"""

import re
import shlex

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile("[\r\n\u2028\u2029\x85]+")


def printable(text) -> str:
    """Replaces control characters and bytes outside UTF-8 by escape sequences.

    Tabs and line feeds stay. The result can be encoded in UTF-8 and sends no command to
    a terminal.

    Example:
      >>> print(printable("a\\x1b[31mb"))
      a\\x1b[31mb
    """
    return _INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], str(text))


def one_line(text) -> str:
    """Returns ``printable`` text with spaces instead of line ends.

    Example:
      >>> one_line("a\\r\\nb")
      'a b'
    """
    return printable(_LINE_ENDS.sub(" ", str(text)))


def markdown(text) -> str:
    """Escapes text for a line or a table cell of Markdown, HTML included.

    Example:
      >>> print(markdown("a | *b* <i>"))
      a \\| \\*b\\* &lt;i>
    """
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*\[\]|$~])|(?<![\w])_|_(?![\w])", r"\\\g<0>", text)


def shell_word(word) -> str:
    """Quotes a path or name as one word of a shell line.

    Example:
      >>> print(shell_word("my runs/a"))
      'my runs/a'
    """
    return shlex.quote(str(word))
