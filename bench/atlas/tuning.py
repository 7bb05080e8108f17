"""Step sizes of what is compared with Atlas, chosen by held-back training windows."""

import json

import numpy as np

from atlas import applications
from atlas import data as people
from harness import results


class Tuned:
    """What a bench knows of step sizes: of an ``application``, in its ``folder``.

    ``earlier`` holds those that need not be found again (``earlier_learning_rates``).
    """

    def learning_rate(self, entry, clients=None, epsilon=None):
        """Of the grid, the one by which held-back training windows are told best.

        By all clients and at the entry's own ε, or, where that matters, by so many and
        at that one.
        """
        entry = applications.ENTRIES[entry.tuned_as]
        if entry.name not in applications.TUNED_APART:
            clients = epsilon = None
        if (entry.name, clients, epsilon) in self.earlier:
            return self.earlier[entry.name, clients, epsilon]
        path = self.folder / "tuned" / results.file_name(entry.name, clients, epsilon)
        kept = json.loads(path.read_text()) if path.is_file() else {}
        before = kept["found"] if kept.get("rounds") == self.rounds() else {}
        found = {float(learning_rate): value for learning_rate, value in before.items()}
        grid = self.learning_rates(entry)[: 1 if self.smoke else None]
        left = [each for each in grid if each not in found]
        if left:
            data = self.data
            if clients is not None:
                data = people.some(data, clients, 0)
            data = people.fifth_apart(data)
            more = {} if epsilon is None else {"epsilon": epsilon}
            for learning_rate in left:
                shorter = [
                    value for size, value in found.items() if size < learning_rate
                ]
                if -np.inf in shorter:  # What is longer diverges, too.
                    found[learning_rate] = -np.inf
                    continue
                try:
                    run = self.train(entry, data, 0, learning_rate, more)
                    found[learning_rate] = self.scores(run, data)["value"]
                except FloatingPointError:
                    found[learning_rate] = -np.inf
            best = max(found, key=found.get)
            kept = {"learning_rate": best, "rounds": self.rounds()}
            kept["found"] = {str(k): v for k, v in found.items()}
            results.keep(path, kept)
            print(f"{self.application.name}: {path.stem} tuned, {found}", flush=True)
        return json.loads(path.read_text())["learning_rate"]

    def learning_rates(self, entry):
        """The grid of an entry, upwards."""
        return [each * entry.scale for each in self.application.learning_rates]

    def lower(self, entry, learning_rate):
        """The step size of the grid below one that diverged."""
        below = [each for each in self.learning_rates(entry) if each < learning_rate]
        if not below:
            raise FloatingPointError(f"{entry.name} diverges at every step size.")
        return below[-1]


def earlier_learning_rates(rows, application, rounds, first):
    """What an earlier run tuned, by the arguments of ``Tuned.learning_rate``.

    Args:
      rows: of its JSON; those that do not say what was tuned tell nothing. Where they
        differ, what was tuned goes before what takes its step size from that.
      application: whose.
      rounds: of every run; what was tuned for another number of them is left out.
      first: how many people train before others join.
    """
    taken, own = {}, {}
    for row in rows:
        if (row.get("application"), row.get("model")) != (
            application.name,
            application.settings["model"],
        ):
            continue
        if row.get("tuned") is None or row["rounds"] != rounds:
            continue
        name = applications.ENTRIES[row["name"]].tuned_as
        clients = epsilon = None
        if name in applications.TUNED_APART:
            clients = {"clients": row["clients"], "joining": first}.get(row["question"])
            epsilon = row["epsilon"] if row["question"] == "epsilon" else None
        kept = own if row["name"] == name else taken
        kept[name, clients, epsilon] = row["tuned"]
    return taken | own
