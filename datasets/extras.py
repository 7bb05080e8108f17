"""Optional dependencies."""

import importlib
from types import ModuleType


def need(module: str, extra: str, name: str) -> ModuleType:
    """Imports an optional module.

    Args:
      module: dotted name of the module.
      extra: extra of jaxanon that installs the module.
      name: name of the feature that needs the module, such as a data set.

    Raises:
      ImportError: if the module is not installed; the message names the extra.

    Example:
      >>> need("json", "energy", "tracebase").dumps([1])
      '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{name} requires {module.partition('.')[0]}, which is not installed; run "
            f"pip install 'jaxanon[{extra}]'."
        ) from error
