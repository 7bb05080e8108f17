"""Windows stacked by subject."""

from typing import NamedTuple

import numpy as np

from jaxanon.datasets.spec import Windows


class Clients(NamedTuple):
    """One row per client; padding has zero windows and labels and is masked out."""

    windows: np.ndarray  # float32[clients, n, time, channels]
    labels: dict[str, np.ndarray]  # int32[clients, n]; float32 for targets
    mask: np.ndarray  # bool[clients, n]


def by_client(windows: Windows) -> Clients:
    """Stacks windows by ``"subject"``, one client per subject.

    Clients are in ascending order of subject. The windows of a client keep their order
    and are padded at the end to the largest number of windows of any client.

    Args:
      windows: ``float32[N, time, channels]`` with ``int32[N]`` labels, one of them
        ``"subject"``, and ``float32[N]`` targets.

    Returns:
      ``Clients``, where ``n`` is the largest number of windows of one subject.

    Raises:
      ValueError: if windows are empty or lack the label ``"subject"``.

    Example:
      >>> three = Windows(np.ones((3, 4, 1), np.float32),
      ...                 {"subject": np.array([7, 2, 7], np.int32)})
      >>> by_client(three).mask
      array([[ True, False],
             [ True,  True]])
    """
    if "subject" not in windows.labels:
        raise ValueError(
            "labels must hold 'subject' (int[N]) to stack windows by client, got "
            f"{sorted(windows.labels)}."
        )
    if len(windows.windows) == 0:
        raise ValueError("windows must hold at least one window to stack, got 0.")
    subject = windows.labels["subject"]
    _, client, counts = np.unique(subject, return_inverse=True, return_counts=True)
    order = np.argsort(client, kind="stable")
    slot = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    mask = np.arange(counts.max()) < counts[:, None]

    def stack(array):
        stacked = np.zeros((*mask.shape, *array.shape[1:]), array.dtype)
        stacked[client[order], slot] = array[order]
        return stacked

    labels = {name: stack(label) for name, label in windows.labels.items()}
    return Clients(stack(windows.windows), labels, mask)
