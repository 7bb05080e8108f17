"""Forecasts of rewritten streams, and realism of synthetic windows."""

import jax.numpy as jnp
import numpy as np

from jaxanon import metrics
from jaxanon.models.fit import FittedClassifier
from jaxanon.models.forecaster import fit_forecaster
from privatehub import runs


def forecasts(place, known, made, taught, seed, smoke) -> dict:
    """Returns mean absolute errors of forecasts in the units of the channels.

    An LSTM reads every ``place.ahead``-th sample and predicts the next one.

    Args:
      place: ``Place`` with ``predicted``.
      known: raw training ``Windows``.
      made: rewritten test windows; taught: rewritten ``known``.
      seed, smoke: arguments of the benchmark.

    Returns:
      ``errors`` for each predicted quantity. ``held``: repeats the last value. ``raw``:
      trained on raw windows, tested on raw ones. ``of_made``: trained on raw windows,
      predicts rewritten samples from rewritten ones. ``of_real``: the same, but
      compared with the real samples. ``taught``: trained on rewritten windows, tested
      on raw ones.
    """
    options = {"steps": 20} if smoke else {"steps": 1000}
    thin = lambda windows: runs.standard(place, windows)[:, :: place.ahead]
    real, seen, test = map(thin, (known.windows, made, place.data.test.windows))
    key = runs.key_of(seed, "measure")
    own = fit_forecaster(key, real, **options)
    other = fit_forecaster(key, thin(taught), **options)
    errors = {
        "held": np.abs(test[:, :-1] - test[:, 1:]),
        "raw": missed(own, test, test),
        "of_made": missed(own, seen, seen),
        "of_real": missed(own, seen, test),
        "taught": missed(other, test, test),
    }
    channels, std = place.data.spec.channels, np.array(place.data.spec.std)
    found = {}
    for what, names in place.predicted.items():
        columns = [channels.index(name) for name in names]
        found[what] = {
            kind: float((error.mean(axis=(0, 1)) * std)[columns].mean())
            for kind, error in errors.items()
        }
    seconds = place.ahead / place.data.spec.rate_hz
    return {"errors": found, "ahead_s": seconds}


def missed(forecasts, read, came):
    """Returns ``float[N, time - 1, channels]``, the absolute errors of forecasts."""
    told = forecasts.net.apply(forecasts.params, jnp.asarray(read[:, :-1]))
    return np.abs(np.asarray(told) - came[:, 1:])


def likeness(place, known, made, net, seed, smoke) -> dict:
    """Returns every synthesis measure of ``jaxanon.metrics`` on test windows.

    Args:
      place: ``Place``.
      known: raw training windows.
      made: generated ``Windows`` of the classes of ``known``.
      net: ``Fitted`` classifier whose features define the Fréchet distance.
      seed, smoke: arguments of the benchmark.
    """
    quick = {"steps": 20} if smoke else {"steps": 500}
    spec, key = place.data.spec, runs.key_of(seed, "measure")
    test = runs.few(place.data.test)
    real, seen, synthetic = (
        runs.standard(place, side.windows) for side in (test, known, made)
    )
    pairs = ((real, test.labels), (synthetic, made.labels))
    told = [(windows, labels[runs.PUBLIC]) for windows, labels in pairs]
    read = lambda windows: features(net, windows)
    return {
        **metrics.transfer_scores(key, *told, spec.num_classes(runs.PUBLIC), **quick),
        "discriminative": metrics.discriminative_score(key, real, synthetic, **quick),
        "predictive": metrics.predictive_score(key, real, synthetic, **quick),
        "predictive_raw": metrics.predictive_score(key, real, seen, **quick),
        "mmd": metrics.mmd(real, synthetic),
        "fid": metrics.frechet_distance(read(real), read(synthetic)),
        "autocorrelation": metrics.autocorrelation_error(real, synthetic),
        "cross_channel": metrics.cross_channel_error(real, synthetic),
        "memorisation": metrics.memorization(seen, synthetic, real),
    }


def features(net: FittedClassifier, windows):
    """Returns ``float[N, features]``, the last hidden layer of a classifier.

    ``jaxanon.models.classifiers.Classifier`` numbers its dense layers.
    """
    layer = f"Dense_{len(net.net.hidden) - 1}"
    _, seen = net.net.apply(
        net.params, jnp.asarray(windows), capture_intermediates=True
    )
    return np.maximum(np.asarray(seen["intermediates"][layer]["__call__"][0]), 0)
