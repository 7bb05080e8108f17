"""Runs TensorFlow Federated on federated's work: WORK OUT ROUNDS."""

import functools
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from federated import work as fed_work


def main():
    """Runs TFF's FedAvg in its local simulation."""
    work = fed_work.load(sys.argv[1])
    laps = fed_work.Laps(sys.argv[2], int(sys.argv[3]))
    sizes = work.sizes

    def dataset(rows):
        # Repeat before batching, so that the fifth batch equals the first one.
        pairs = tf.data.Dataset.from_tensor_slices((rows, rows)).repeat()
        return pairs.batch(sizes.batch, drop_remainder=True).take(sizes.steps)

    clients = [dataset(rows) for rows in work.rows]

    def model_fn():
        dense = [
            tf.keras.layers.Dense(
                width,
                activation="relu" if i + 1 < len(work.layers) else None,
                kernel_initializer=tf.constant_initializer(kernel),
            )
            for i, (width, (kernel, _)) in enumerate(
                zip(sizes.widths[1:], work.layers, strict=True)
            )
        ]
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential([tf.keras.Input(sizes.widths[:1]), *dense]),
            loss=tf.keras.losses.MeanSquaredError(),
            input_spec=clients[0].element_spec,
        )

    process = tff.learning.algorithms.build_weighted_fed_avg(
        model_fn,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(sizes.learning_rate),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    state = process.initialize()

    def layers(state):
        flat = [np.asarray(x) for x in process.get_model_weights(state).trainable]
        return list(zip(flat[::2], flat[1::2], strict=True))

    for _ in range(laps.total):
        state = process.next(state, clients).state
        laps.lap(functools.partial(layers, state))
    laps.save(tff=tff.__version__, tensorflow=tf.__version__)
