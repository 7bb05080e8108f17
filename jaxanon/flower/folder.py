"""A run's folder while rounds come in one by one: metrics, checkpoints, refusals."""

import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

from jaxanon.privacy import ledger
from jaxanon.training import checkpoint, metrics_log, progress

SLOW_S = 0.5  # To reckon what a round spends.

REFUSED = "refused.jsonl"  # Beside a run's metrics: round, client and why.


class Folder:
    """A run's folder. A class because its checkpoints are open, and time passes.

    Args:
      out: path, claimed before.
      method: ``Method``.
      total: rounds.
      per_epoch: rounds of an epoch.
      tell: gets a sentence of each refusal.
    """

    def __init__(self, out, method, total: int, per_epoch: int, tell: Callable):
        self.path, self.total = pathlib.Path(out), total
        self.state: Any = None
        self.history: list[dict] = []
        self._method, self._per_epoch, self._tell = method, per_epoch, tell
        self._checkpoints = checkpoint.Checkpoints(out)
        self._saved: int | None = None
        self._begun = self._covered = 0
        self._ahead = 0
        self._told: dict | None = None  # Of the guarantee, after ``_covered`` rounds.
        self._saved_at = time.monotonic()

    def begin(self, state):
        """The state to go on from: the last checkpoint's, or the one given."""
        found = self._checkpoints.restore(state) or state
        self._begun = ledger.begun(self.path, found)
        self.state, self._saved = found, int(found.round)
        self.history = self._checkpoints.go_on(self._saved)
        return self.state

    def asking(self) -> None:
        """Notes that clients are to be asked for a round: what they send is spent."""
        self._begun += 1
        if self._begun > self._covered:
            start = time.monotonic()
            ahead = min(self._begun + self._ahead, self.total)
            self._account(max(self._begun, ahead), "rdp")
            # What takes long to reckon is reckoned of more rounds at once.
            slow = time.monotonic() - start > SLOW_S
            self._ahead = max(1, 2 * self._ahead) if slow else self._ahead
        self._keep()

    def add(self, state, info: dict, answers: int, seconds: float) -> dict:
        """Notes a round, and keeps it where the last checkpoint is old; its row."""
        self.state, done = state, int(state.round)
        of_all = self._method, done, self._per_epoch, info, seconds, answers
        row = progress.row(*of_all) | {"answers": answers}
        self.history.append(row)
        metrics_log.append(self.path, row)
        if time.monotonic() - self._saved_at > 5:
            self._save()
        return row

    def refuse(self, client: int | None, why: str) -> None:
        """Notes whose message counts for nothing."""
        done = int(self.state.round)
        with (self.path / REFUSED).open("a", encoding="utf-8") as file:
            row = {"round": done + 1, "client": client, "why": why}
            file.write(json.dumps(row) + "\n")
        who = "A client" if client is None else f"Client {client}"
        self._tell(f"Round {done + 1}: {who} is refused: {why}")

    def _save(self):
        done = int(self.state.round)
        if done == self._saved:
            return
        self._checkpoints.save(self.state)
        self._saved, self._saved_at = done, time.monotonic()

    def _account(self, rounds, accountant):
        self._covered = rounds
        self._told = ledger.told_of(self._method, self.state, rounds, accountant)

    def _keep(self):
        if self._told is not None:
            about = {"done": int(self.state.round), "begun": self._begun}
            ledger.keep_rounds(self.path, self._told, **about, asked=self.total)

    def close(self) -> None:
        """Keeps the last good round, and lets go of the folder."""
        try:
            if self.state is not None:
                self._save()
                self._account(self._begun, "pld")
                self._keep()
        finally:
            self._checkpoints.close()
