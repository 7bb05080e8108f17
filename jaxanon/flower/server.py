"""Training of a method over Flower clients into a run folder."""

import contextlib
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxanon.core import checks
from jaxanon.core.run import Run
from jaxanon.federated.engine import exchange
from jaxanon.flower import keys, server_transport, terms
from jaxanon.flower.records import Payload
from jaxanon.flower.roster import POLL_S, Roster
from jaxanon.flower.rounds import Bounds, TooFew, rounds
from jaxanon.flower.settings import Serving
from jaxanon.kernels.checks import whole
from jaxanon.privacy import ledger
from jaxanon.privacy.guarantee import epochs_within_budget
from jaxanon.training import checkpoint, metrics_log, progress, run_folder, trainer

TRIES = 3  # Attempts at a round with too few valid replies.

SLOW_S = 0.5  # Accounting slower than this covers several rounds at a time.

REFUSED = "refused.jsonl"  # Rejected messages of a run: round, client and why.


def serve(
    method,
    data,
    serving: Serving,
    *,
    epochs: int = 20,
    seed: int = 0,
    output_dir,
    resume: bool = False,
    show: bool = True,
    log: Callable[[str], None] = print,
    on_claim: Callable[[], None] | None = None,
) -> Run:
    """Trains as ``jaxanon.train`` does, over clients in their own processes.

    With the same seed, and if all clients of each cohort reply, the result equals
    that of ``jaxanon.train``. Learners with a guarantee differ because their clients
    draw noise from secret keys.

    Args:
      method: ``Method`` that passes ``terms.check_method``.
      data: ``jaxanon.datasets.Data``. Only its spec and the number of windows per
        client affect the training.
      serving: ``Serving``.
      epochs, seed, output_dir, resume, on_claim: see ``jaxanon.train``.
      show: whether to show progress. Without a terminal, lines replace the bar.
      log: callback for lines about clients that join, leave or are rejected.

    Returns:
      ``Run``. State that clients keep has its initial value in it.

    Raises:
      OSError: if the port is taken or a TLS file is missing, before anything is
        written.
      ValueError: if ``jaxanon.train`` would raise it, the method cannot train over
        Flower, or the TLS files are not a certificate and its private key.
      TooFew: if too few clients connect, or too few reply ``TRIES`` times. The
        checkpoint of the last completed round remains.
      FloatingPointError: if the state is no longer finite. The checkpoint remains.
    """
    checks.seed(seed)
    whole("epochs", epochs, least=1)
    terms.check_method(method)
    epochs = epochs_within_budget(method, epochs)
    trainer.check_data(method, data)
    key_file = serving.client_keys
    public_keys = None if key_file is None else keys.public_keys(key_file)
    keys.check_certificate(serving.certificate, serving.private_key)
    most = int(np.unique(data.train.labels["subject"], return_counts=True)[1].max())
    clients = terms.clients_of(method, data)
    init_key, run_key = jax.random.split(jax.random.key(seed))
    # Unlike in training, no copy is needed: no round donates the state's buffers.
    state = jax.device_put(method.init(init_key))
    agreed = terms.terms(method, state, clients, serving.max_windows or most, seed)
    config = run_folder.describe(method, data, state, epochs=epochs, seed=seed)
    one = terms.own_windows(method, _zero_window(data), 0, agreed)
    bounds = Bounds(serving.min_replies, serving.max_message_norm)
    parts = rounds(method, run_key, clients, jax.eval_shape(lambda: one), bounds)
    total = epochs * method.schedule.rounds_per_epoch(one)
    port = server_transport.listen(*checks.host_and_port(serving.address))
    with contextlib.closing(port), checkpoint.lock_folder(output_dir):
        not_too_far = lambda: run_folder.check_not_past(output_dir, total, epochs)
        run_folder.claim(output_dir, config, resume=resume, check=not_too_far)
        if on_claim is not None:
            on_claim()
        folder = Folder(output_dir, method, total, total // epochs, log)
        first = exchange.pack(exchange.initial_own(state))
        digest = terms.digest(agreed)
        with contextlib.closing(folder):
            state = folder.begin(state)
            with server_transport.serving(
                port,
                certificate=serving.certificate,
                private_key=serving.private_key,
                public_keys=public_keys,
                log=log,
            ) as (link, nodes):
                log(f"Serving {method.name} at {serving.address}, digest {digest}.")
                roster = Roster(
                    link,
                    Payload({"terms": agreed}, first),
                    digest,
                    num_clients=len(clients),
                    nodes=nodes,
                    timeout_s=serving.timeout_s,
                    refuse=folder.refuse,
                    log=log,
                )
                _drive(roster, parts, folder, state, serving, epochs, show)
    return Run(method, folder.state, data.spec, folder.path, folder.history, config)


def _zero_window(data):
    """Returns a window of zeros, for the shapes of a client's data."""
    return jax.tree.map(lambda leaf: np.zeros_like(leaf[:1]), data.train)


def _drive(roster, parts, folder, state, serving, epochs, show):
    """Runs all remaining rounds, then sends the outcome to the connected clients."""
    why, failed = "the server stopped.", True
    try:
        _wait_for(roster, serving.min_available_clients, serving.wait_s)
        done, total = int(state.round), folder.total
        options = {"show": show, "epochs": epochs, "legend": progress.LEGEND}
        with progress.rounds(total, done, **options) as show_row:
            while done < total:
                start = time.monotonic()
                state, info, good = _one_round(roster, parts, folder, state, serving)
                roster.accepted.update(good)
                done = int(state.round)
                show_row(folder.add(state, info, len(good), time.monotonic() - start))
        why, failed = f"the training is done; round {total} was its last.", False
    except (TooFew, FloatingPointError) as error:
        why = str(error)
        raise
    finally:
        roster.dismiss(why, failed=failed)


def _wait_for(roster, number, wait_s):
    end = time.monotonic() + wait_s
    while len(roster.present) < number:
        if time.monotonic() > end:
            raise TooFew(
                f"{len(roster.present)} clients are connected after {wait_s:g} s, but "
                f"{number} are needed; start more, or wait longer (--wait-s)."
            )
        roster.poll()
        time.sleep(POLL_S)


def _one_round(roster, parts, folder, state, serving):
    """Runs a round, with at most ``TRIES`` attempts to get enough replies."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(TooFew):
            return _one_try(roster, parts, folder, state)
        _wait_for(roster, serving.min_replies, serving.wait_s)
    return _one_try(roster, parts, folder, state)


def _one_try(roster, parts, folder, state):
    roster.poll()
    # Counted before clients are asked, so that the ledger never understates.
    folder.asking()
    return parts.update(state, roster.ask, folder.refuse)


class Folder:
    """A run's folder during training, with its open checkpoints.

    Args:
      out: path of the claimed folder.
      method: ``Method``.
      total: number of rounds.
      per_epoch: number of rounds per epoch.
      log: callback for a line about each rejected message.
    """

    def __init__(self, out, method, total: int, per_epoch: int, log: Callable):
        self.path, self.total = pathlib.Path(out), total
        self.state: Any = None
        self.history: list[dict] = []
        self._method, self._per_epoch, self._log = method, per_epoch, log
        self._checkpoints = checkpoint.Checkpoints(out)
        self._saved: int | None = None
        self._begun = self._covered = 0
        self._ahead = 0
        self._spent: dict | None = None  # The guarantee after ``_covered`` rounds.
        self._saved_at = time.monotonic()

    def begin(self, state):
        """Returns the state of the last checkpoint, or ``state`` if there is none."""
        latest = self._checkpoints.restore(state) or state
        self._begun = ledger.rounds_spent(self.path, latest)
        self.state, self._saved = latest, int(latest.round)
        self.history = self._checkpoints.truncate_after(self._saved)
        return self.state

    def asking(self) -> None:
        """Charges a round to the ledger before clients are asked."""
        self._begun += 1
        if self._begun > self._covered:
            start = time.monotonic()
            ahead = min(self._begun + self._ahead, self.total)
            self._account(max(self._begun, ahead), "rdp")
            # If accounting is slow, account for more rounds at once.
            slow = time.monotonic() - start > SLOW_S
            self._ahead = max(1, 2 * self._ahead) if slow else self._ahead
        self._keep()

    def add(self, state, info: dict, answers: int, seconds: float) -> dict:
        """Logs a round, saves a checkpoint if the last is old; returns the row."""
        self.state, done = state, int(state.round)
        about = self._method, done, self._per_epoch, info, seconds, answers
        row = progress.row(*about) | {"answers": answers}
        self.history.append(row)
        metrics_log.append(self.path, row)
        if time.monotonic() - self._saved_at > 5:
            self._save()
        return row

    def refuse(self, client: int | None, why: str) -> None:
        """Records a rejected message."""
        done = int(self.state.round)
        with (self.path / REFUSED).open("a", encoding="utf-8") as file:
            row = {"round": done + 1, "client": client, "why": why}
            file.write(json.dumps(row) + "\n")
        who = "A client" if client is None else f"Client {client}"
        self._log(f"Round {done + 1}: {who} is rejected: {why}")

    def _save(self):
        done = int(self.state.round)
        if done == self._saved:
            return
        self._checkpoints.save(self.state)
        self._saved, self._saved_at = done, time.monotonic()

    def _account(self, rounds, accountant):
        self._covered = rounds
        self._spent = ledger.privacy_report(
            self._method, self.state, rounds, accountant
        )

    def _keep(self):
        if self._spent is not None:
            about = {"done": int(self.state.round), "begun": self._begun}
            ledger.write_rounds(self.path, self._spent, **about, asked=self.total)

    def close(self) -> None:
        """Saves the last completed round and closes the checkpoints."""
        try:
            if self.state is not None:
                self._save()
                self._account(self._begun, "pld")
                self._keep()
        finally:
            self._checkpoints.close()
