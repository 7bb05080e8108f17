"""Linear features that are chosen by the labels themselves, as DEEProtect's are not."""

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis


def features(name, count, windows, labels):
    """``windows -> features``, learned from windows with labels.

    Args:
      name: one of ``PROJECTIONS``.
      count: how many features, fewer than classes.
      windows: ``float[N, time, channels]`` to learn from.
      labels: ``int[N]``, the classes of the useful inference.
    """
    flat = lambda windows: windows.reshape(len(windows), -1)
    learned = PROJECTIONS[name](count).fit(flat(windows), labels)
    return lambda windows: learned.transform(flat(windows))


PROJECTIONS = {
    "linear discriminants": lambda count: LinearDiscriminantAnalysis(
        n_components=count
    ),
    "neighbourhood components": lambda count: NeighborhoodComponentsAnalysis(
        count, random_state=0
    ),
}
