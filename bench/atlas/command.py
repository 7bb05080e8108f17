"""Compares Atlas with other federated learners on five questions.

Example: ``python bench atlas --only "FedAvg;Atlas" --question methods --smoke``.

Answers the questions of the Atlas chapter (figures 3.9 to 3.13) on substitute data: the
score of each method, the effect of the number of clients and of ε, the score of clients
that join later, and the traffic. ε protects an example of a client and is computed from
privacy loss distributions with δ = 1e-5. "Atlas, as claimed" adds the noise that the
published text describes; its guarantee does not hold.

``--json F`` merges the rows into F and writes tables (.md, .html) and figures (.png,
one per question) with the same name. ``--folder`` (runs/atlas) saves answers, so that
the same command resumes; ``--hours`` limits the time in which new jobs start.
``--case`` selects an application; Photographs (CIFAR-10, needs a GPU) runs only if
named. ``--only`` selects methods, separated by semicolons; ``--question`` one of
methods, clients, epsilon, joining, traffic. ``--seeds`` is the number of seeds (default
1). ``--model lstm`` trains the chapter's network instead of a CNN.

Each method's learning rate is tuned on a grid. It maximizes the score on the last fifth
of each client's training windows per class after all rounds, for the first seed and ε =
2 (FedSGD-LDP and Atlas: for each ε and number of clients). If it diverges later, the
next lower one is used. Fine-tuning uses at most the learning rate of training alone,
because it does not clip. ``--learning-rates F`` reads learning rates from the rows of
an earlier run, which saves most of the time, and tunes the missing ones.
"""

import dataclasses
import functools
import json
import pathlib
import tempfile
import time

import numpy as np

import jaxanon as ja
from atlas import applications, page
from atlas import data as people
from atlas.tuning import Tuned, earlier_learning_rates
from harness import results, timing
from harness.data import thin
from harness.results import file_name, plain
from jaxanon import learners
from jaxanon.evaluation import federated

QUESTIONS = ("methods", "epsilon", "joining", "traffic", "clients")


def main():
    """Trains and evaluates missing entries, then writes all results."""
    args = timing.arguments(
        __doc__,
        folder="atlas",
        hours=True,
        case=f"one of {[each.name for each in applications.APPLICATIONS]}",
        only=timing.one_of(applications.ENTRIES, apart=";"),
        question=timing.one_of(QUESTIONS),
        seeds=timing.number(1, "number of seeds"),
        model="network, cnn by default; the chapter uses lstm",
        learning_rates="JSON of an earlier run with tuned learning rates",
    )
    chosen = applications.SMOKE if args.smoke else applications.APPLICATIONS
    timing.among("case", args.case, [each.name for each in chosen])
    earlier = (
        pathlib.Path(args.learning_rates).read_text() if args.learning_rates else "[]"
    )
    benches = []
    for each in chosen:
        if args.case == each.name or (args.case is None and not each.only_named):
            if args.model:
                more = {"model": args.model}
                if args.model == "lstm":  # The chapter adds three dense layers.
                    more["hidden_sizes"] = (64, 64)
                each = each._replace(settings=each.settings | more)
            try:
                benches.append(
                    Bench(each, args.folder, args.smoke, json.loads(earlier))
                )
            except OSError as error:
                print(f"Skipping {each.name}: {error}")
    failed = results.go_through(jobs(args, benches), args.end)
    found = [row for bench in benches for row in bench.rows()]
    rows = results.with_earlier(args, found)
    if args.json is not None:
        page.write(args.json, rows)
    print(page.markdown(rows))
    results.stop_if(sorted(set(failed)))


def jobs(args, benches):
    """Yields ``(name, function)`` for each answer."""
    for seed in range(args.seeds):
        for question in [args.question] if args.question else QUESTIONS:
            for bench in benches:
                for job in bench.jobs(question, args.only):
                    do = functools.partial(bench.answer, question, seed, **job)
                    yield (bench.application.name, job["name"]), do


class Bench(Tuned):
    """An application with its data, which are loaded once."""

    def __init__(self, application, folder, smoke, earlier=()):
        self.application, self.smoke = application, smoke
        data = ja.load(application.dataset, **application.load)
        self.data = thin(data) if smoke else data
        self.folder = folder / application.settings["model"] / plain(application.name)
        first = people.number_of_first(self.data)
        self.earlier = earlier_learning_rates(
            earlier, application, self.rounds(), first
        )

    def jobs(self, question, only):
        """Yields keyword arguments of ``answer`` for each answer to a question."""
        names = [name for name in applications.ENTRIES if name in only]
        within = lambda listed: [name for name in names if name in listed]
        if question == "clients":
            counts = self.application.clients
            names = within(applications.OVER_CLIENTS)
            return [{"name": name, "clients": n} for n in counts for name in names]
        if question == "epsilon":
            names = within(applications.OVER_EPSILON)
            epsilons = applications.EPSILONS
            return [{"name": name, "epsilon": e} for e in epsilons for name in names]
        listed = {
            "methods": names,
            "joining": applications.JOINING,
            "traffic": applications.OVER_ROUNDS,
        }
        return [{"name": name} for name in within(listed[question])]

    def answer(self, question, seed, name, clients=None, epsilon=None):
        """Computes and saves an answer unless it exists."""
        path = self.folder / question / file_name(name, clients, epsilon, seed)
        entry = applications.ENTRIES[name]
        apart = clients
        if question == "joining":
            apart = people.number_of_first(self.data)
        learning_rate = tuned = self.learning_rate(entry, apart, epsilon)
        if path.is_file() and results.kept(path).get("tuned") == tuned:
            return
        more = {} if epsilon is None else {"epsilon": epsilon}
        data = self.data
        if clients is not None:
            data = people.some(data, clients, seed)
        start = time.monotonic()
        ask = {"joining": self.joining, "traffic": self.over_rounds}
        find = ask.get(question, self.once)
        try:
            found = find(entry, data, seed, learning_rate, more)
        except FloatingPointError:  # The tuned learning rate diverges here.
            learning_rate = self.lower(entry, learning_rate)
            found = find(entry, data, seed, learning_rate, more)
        row = {
            "question": question,
            "application": self.application.name,
            "stands_for": self.application.stands_for,
            "metric": self.application.metric,
            "published": self.application.published.get(name),
            "name": name,
            "kind": entry.kind,
            "seed": seed,
            "clients": clients or len(np.unique(data.train.labels["subject"])),
            "epsilon": epsilon if more else entry.settings.get("epsilon") or None,
            "rounds": self.rounds(),
            "learning_rate": learning_rate,
            "tuned": tuned,  # False only for diverging learning rates.
            "model": self.application.settings["model"],
            "seconds": time.monotonic() - start,
            **found,
            **timing.about(),
        }
        results.keep(path, row)
        print(f"{self.application.name}, {question}: {name} {told(row)}", flush=True)

    def rounds(self):
        """Returns the number of rounds of every run."""
        return 2 if self.smoke else self.application.rounds

    def learner(self, entry, spec, learning_rate, more):
        """Builds the learner of an entry."""
        offered = learners.config_class(entry.learner).__dataclass_fields__
        settings = self.application.settings
        given = {name: settings[name] for name in settings if name in offered}
        given |= entry.settings | more | {entry.tuned: learning_rate}
        if "max_examples" in offered:
            given |= {"max_examples": self.application.records}
        if "max_rounds" in offered:
            given |= {"max_rounds": self.rounds()}
        return learners.build(entry.learner, spec, **given)

    def train(self, entry, data, seed, learning_rate, more, **options):
        """Trains a run of an entry."""
        learner = self.learner(entry, data.spec, learning_rate, more)
        options = {"epochs": self.rounds(), "progress": False} | options
        return ja.train(learner, data, seed=seed, **options)

    def once(self, entry, data, seed, learning_rate, more):
        """Returns the scores of its clients after the last round."""
        run = self.train(entry, data, seed, learning_rate, more)
        if entry.last_fit:
            alone = self.learning_rate(applications.ENTRIES["localized"])
            run = people.fitted(run, entry.last_fit, min(learning_rate, alone))
        return self.scores(run, data)

    def scores(self, run, data):
        """Returns the scores of a report that the tables use."""
        try:
            report = federated.evaluate(run, data)
        except ValueError as error:
            if "must be finite" in str(error):
                raise FloatingPointError("what is predicted is not finite") from error
            raise
        metric = self.application.metric
        each = [row[metric] for row in report["clients"]]
        privacy = report["privacy"] or {}
        return {
            "value": report["mean"][metric],
            "spread": report["std"][metric],
            "median": float(np.median(each)),
            "least": min(each),
            "bytes_up": report["traffic"]["up"],
            "bytes_down": report["traffic"]["down"],
            "spent": privacy.get("epsilon"),
            "holds": privacy.get("holds"),
        }

    def over_rounds(self, entry, data, seed, learning_rate, more):
        """Returns the scores at intervals of a few rounds."""
        last = self.rounds()
        marks = sorted({max(1, round(last * part / 10)) for part in range(1, 11)})
        curve = []
        with tempfile.TemporaryDirectory() as folder:
            for mark in marks:
                options = {"epochs": mark, "output_dir": folder, "resume": True}
                run = self.train(entry, data, seed, learning_rate, more, **options)
                scores = self.scores(dataclasses.replace(run, folder=None), data)
                curve.append({"round": mark, **scores})
        return {"curve": curve, **curve[-1]}

    def joining(self, entry, data, seed, learning_rate, more):
        """Returns the scores of clients that join later, joined and alone."""
        return people.joining(self, entry, data, seed, learning_rate, more)

    def rows(self):
        """Returns all saved answers."""
        return results.answers(self.folder, QUESTIONS)


def told(row):
    """Returns a short description of a row."""
    score = f"{row['metric']} {row['value']:.3f} ± {row['spread']:.3f}"
    return f"({row['clients']} clients, ε {row['epsilon']}): {score}"
