"""Tuning of learning rates for the comparison with Atlas."""

import json

import numpy as np

from atlas import applications
from atlas import data as people
from harness import results


class Tuned:
    """Tuned learning rates of an ``application``, saved in its ``folder``.

    ``earlier`` holds the results of an earlier run (``earlier_learning_rates``).
    """

    def learning_rate(self, entry, clients=None, epsilon=None):
        """Returns the learning rate with the best score on held-out training windows.

        Uses all clients and the entry's ε, or the given ones where they matter.
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
                if -np.inf in shorter:  # Larger learning rates diverge, too.
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
        """Returns the grid of an entry in ascending order."""
        return [each * entry.scale for each in self.application.learning_rates]

    def lower(self, entry, learning_rate):
        """Returns the next lower learning rate after divergence."""
        below = [each for each in self.learning_rates(entry) if each < learning_rate]
        if not below:
            raise FloatingPointError(f"{entry.name} diverges at every step size.")
        return below[-1]


def earlier_learning_rates(rows, application, rounds, first):
    """Returns learning rates of an earlier run by ``Tuned.learning_rate`` arguments.

    Args:
      rows: rows of its JSON; rows without tuning information are ignored. A tuned row
        takes precedence over one that uses its learning rate.
      application: name of the application.
      rounds: number of rounds; rows with another number are ignored.
      first: number of clients that train before others join.
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
