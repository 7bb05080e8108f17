"""Atlas beside what it is compared with: python bench atlas [--smoke] [options].

Answers the five questions of the Atlas chapter (figures 3.9 to 3.13) on real data that
stand for the chapter's: how well clients predict by each method, by how many clients,
over ε, what people who join later get, and what is sent. ε is of an example of a
client, by privacy loss distributions, δ 1e-5; "Atlas, as claimed" adds the noise that
the published text describes, and its guarantee does not hold.

``--json F`` writes the rows to F, beside those there that were not found anew, tables
as F with .md and .html, figures as F with the question and .png. What was found is kept
in ``--folder`` (runs/atlas), so that the same command goes on where it was stopped;
``--hours`` says when to begin nothing new. ``--case`` names one application, and
Photographs (CIFAR-10, work for a GPU) is run only so; ``--only`` names methods, with
semicolons between; ``--question`` one of methods, clients, epsilon, joining, traffic;
``--seeds`` how many seeds, 1 by default; ``--model lstm`` trains the chapter's network
in place of a CNN.

Each method's step size is the one of a grid by which the last fifth of each client's
training windows, class by class, are told best after all rounds, by the first seed and
at ε = 2 (FedSGD-LDP's and Atlas's: for each ε and number of clients); where it diverges
later, the one below. Last fits have no larger one than training alone: nothing is
clipped in them. ``--step-sizes F`` takes them from the rows of an earlier run, which
saves most of the time, and tunes what these do not tell.
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
    """Trains and evaluates what is missing, then writes all that there is."""
    args = timing.arguments(
        __doc__,
        folder="atlas",
        hours=True,
        case=f"one of {[each.name for each in applications.APPLICATIONS]}",
        only=timing.one_of(applications.ENTRIES, apart=";"),
        question=timing.one_of(QUESTIONS),
        seeds=timing.number(1, "how many seeds"),
        model="cnn by default; lstm is the chapter's",
        learning_rates="an earlier run's JSON, to take them from; tuned by default",
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
                if args.model == "lstm":  # And three dense layers, as the chapter's.
                    more["hidden"] = (64, 64)
                each = each._replace(settings=each.settings | more)
            try:
                benches.append(
                    Bench(each, args.folder, args.smoke, json.loads(earlier))
                )
            except OSError as error:
                print(f"{each.name} is left out: {error}")
    failed = results.go_through(jobs(args, benches), args.end)
    found = [row for bench in benches for row in bench.rows()]
    rows = results.with_earlier(args, found)
    if args.json is not None:
        page.write(args.json, rows)
    print(page.markdown(rows))
    results.stop_if(sorted(set(failed)))


def jobs(args, benches):
    """``(name, what to do)`` for each answer."""
    for seed in range(args.seeds):
        for question in [args.question] if args.question else QUESTIONS:
            for bench in benches:
                for job in bench.jobs(question, args.only):
                    do = functools.partial(bench.answer, question, seed, **job)
                    yield (bench.application.name, job["name"]), do


class Bench(Tuned):
    """An application in the making. A class, for its data are read once."""

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
        """Keywords of ``answer`` for each answer to a question."""
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
        """Finds and keeps one answer, unless that was done."""
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
        except FloatingPointError:  # Fast at first, and then too fast.
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
            "tuned": tuned,  # It was, but for what diverged.
            "model": self.application.settings["model"],
            "seconds": time.monotonic() - start,
            **found,
            **timing.about(),
        }
        results.keep(path, row)
        print(f"{self.application.name}, {question}: {name} {told(row)}", flush=True)

    def rounds(self):
        """Rounds of every run."""
        return 2 if self.smoke else self.application.rounds

    def learner(self, entry, spec, learning_rate, more):
        """The learner of an entry."""
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
        """A run of an entry."""
        learner = self.learner(entry, data.spec, learning_rate, more)
        options = {"epochs": self.rounds(), "progress": False} | options
        return ja.train(learner, data, seed=seed, **options)

    def once(self, entry, data, seed, learning_rate, more):
        """What its clients predict after the last round."""
        run = self.train(entry, data, seed, learning_rate, more)
        if entry.last_fit:
            alone = self.learning_rate(applications.ENTRIES["localized"])
            run = people.fitted(run, entry.last_fit, min(learning_rate, alone))
        return self.scores(run, data)

    def scores(self, run, data):
        """What a report says that the tables need."""
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
        """The same after every few rounds."""
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
        """What people get who join after training, beside training alone."""
        return people.joining(self, entry, data, seed, learning_rate, more)

    def rows(self):
        """Every answer that there is."""
        return results.answers(self.folder, QUESTIONS)


def told(row):
    """A row in a few words."""
    score = f"{row['metric']} {row['value']:.3f} ± {row['spread']:.3f}"
    return f"({row['clients']} clients, ε {row['epsilon']}): {score}"
