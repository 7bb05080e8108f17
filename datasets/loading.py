"""``load``: one call from a name, or a file, to windows that can be trained on."""

import os

from jaxanon.datasets import registry, store
from jaxanon.datasets.choices import choose
from jaxanon.datasets.own import load_file
from jaxanon.datasets.pipeline import windowed
from jaxanon.datasets.spec import Data, Spec
from jaxanon.datasets.targets import Target, moments


def load(
    name_or_npz,
    *,
    public: str | None = None,
    private=None,
    preset: str | None = None,
    split: str | None = None,
    source=None,
    data_dir=None,
    seed: int = 0,
) -> Data:
    """Loads a data set as windows, split into those to train and to test with.

    Args:
      name_or_npz: a name of ``datasets.names()``, or the path of an ``.npz`` file of
        your own, laid out as ``jaxanon.datasets.own`` says; there ``public`` and
        ``private`` have no default unless the file gives one.
      public: the attribute that anonymized windows keep, or the target that learners
        predict; default by data set.
      private: the attributes that they hide, one name or several; default by data
        set.
      preset: how to cut the recordings; ``None`` is the data set's first.
      split: ``"trial"``, ``"subject"`` or ``"time_block"``, where the data set
        offers it, and ``"given"`` where the files say so; ``None`` is the first.
        Never by window, because windows overlap; only ``"official"``, where a
        published program did so, repeats it, statistics of both sides included, for
        comparison with its numbers and nothing else.
      source: folder or file of the original data, where they are not found alone.
      data_dir: where prepared data is kept; default ``$JAXANON_CACHE``, else
        ``~/.cache/jaxanon``. The first call fills it, later ones take a second.
      seed: draws the test subjects of ``split="subject"`` and the test windows of
        ``"official"``, and the clients of what nobody made (CIFAR-10); nothing else
        is random.

    Returns:
      ``Data(spec, train, test)``: ``float32[N, time, channels]`` in physical units,
      ``int32[N]`` labels, ``float32[N]`` targets. Mean and standard deviation are of
      the training rows.

    Raises:
      ValueError: for a name, attribute, preset or split that there is not, and for
        data that does not hold what it should.
      FileNotFoundError: if the original files are nowhere to be found.

    Example:
      >>> data = load("smartwatch", private=["side", "subject"])
      >>> data.train.windows.shape[1:], data.spec.num_classes("side")
      ((128, 6), 2)
    """
    name = os.fspath(name_or_npz)
    private = (private,) if isinstance(private, str) else private
    private = None if private is None else tuple(private)
    split = None if split is None else split.replace(" ", "_").replace("-", "_")
    if name.endswith(".npz"):
        for argument, value in {"preset": preset, "source": source}.items():
            if value is not None:
                raise ValueError(
                    f"{argument} does not apply to a file of your own, got {value!r}; "
                    "leave it out."
                )
        return load_file(name, public=public, private=private, split=split, seed=seed)
    dataset = registry.find(name)
    split = choose("split", split or dataset.splits[0], dataset.splits)
    preset = choose("preset", preset or next(iter(dataset.presets)), dataset.presets)
    numbers = dataset.presets[preset].targets
    public = choose("public", public or dataset.public, [*dataset.attributes, *numbers])
    private = dataset.private if private is None else private
    for attribute in private:
        choose("private", attribute, dataset.attributes)
    chosen = dataset.presets[preset]
    parts = store.read(chosen.origin or dataset, source, data_dir)
    classes, mean, std, train, test = windowed(dataset, chosen, parts, split, seed)
    if chosen.tokens:  # Numbers that stand for something have no mean.
        mean, std = (0.0,), (1.0,)
    spec = Spec(
        name=dataset.name,
        preset=preset,
        channels=chosen.channels,
        units=chosen.units,
        rate_hz=dataset.rate_hz / chosen.every,
        time=chosen.length,
        public=public,
        private=private,
        classes=classes,
        mean=mean,
        std=std,
        split=split,
        tokens=chosen.tokens,
        targets={name: _target(t, train.labels[name]) for name, t in numbers.items()},
    )
    return Data(spec, train, test)


def _target(forecast, values) -> Target:
    """What a preset predicts, with the statistics of training windows."""
    mean, std = moments(values)
    about = {"channel": forecast.channel, "samples": forecast.samples}
    return Target(unit=forecast.unit, mean=mean, std=std, **about)
