"""Jobs of the PFDRL benchmark: the chapter's methods, and PFDRL with other settings."""

from typing import Any, NamedTuple

from jaxanon import energy, federated

METHODS = {
    "Local": "local",
    "Cloud": "cloud",
    "FL": "fl",
    "FRL": "frl",
    "PFDRL": "pfdrl",
}
KINDS = {"LR": "lr", "SVM": "svm", "BP": "bp", "LSTM": "lstm"}
RATES = (1e-3, 3e-3, 1e-2)  # Learning rates; each forecaster uses its best one.
ALPHAS = (1, 2, 3, 4, 5, 6, 7, 8, 9)  # The ninth layer outputs the Q-values.
HOURS = (1, 2, 6, 12, 24)  # The chapter's 0.1 and 0.5 are less than a slot.
NOISE = (0.0, 1e-2, 1e-1, 1.0, 3.0, 10.0)
CLIP_NORM = 1.0
MESSAGES = {
    "all arrive": federated.ChannelConfig(),
    "10 % lost": federated.ChannelConfig(drop_probability=0.1),
    "half lost": federated.ChannelConfig(drop_probability=0.5),
    "half lost, the last kept": federated.ChannelConfig(
        drop_probability=0.5, max_age=4
    ),
    "half a round late": federated.ChannelConfig(delay_probability=0.5, max_age=1),
}
QUICK = {"forecast": energy.ForecastConfig(kind="bp")}  # For questions about control.
SMALL = {  # Cheap control, for questions about forecasts only.
    "hidden_sizes": (8,),
    "dqn": energy.DQNConfig(num_envs=60),
}
SHALLOW = {"alpha": 1}  # SMALL has two layers.
QUESTIONS = (
    *("methods", "forecasts", "joining", "alpha", "gamma", "beta"),
    *("graphs", "messages", "privacy"),
)


class Job(NamedTuple):
    """One run that answers part of a question."""

    question: str
    name: str
    settings: dict  # of PFDRLConfig
    hyper: dict
    graph: str = "everybody"
    x: Any = None  # x value in a figure
    rates: tuple = ()  # candidate learning rates, selected on training days


def jobs(question, smoke) -> list[Job]:
    """Returns the runs of a question."""
    if question in ("methods", "joining"):
        return [
            Job(question, name, {"method": method}, {})
            for name, method in METHODS.items()
        ]
    if question == "forecasts":
        return [
            Job(
                question,
                name,
                SMALL | {"forecast": energy.ForecastConfig(kind=kind)},
                SHALLOW,
                rates=RATES[-2:] if smoke else RATES,
            )
            for name, kind in KINDS.items()
        ]
    if question == "alpha":
        alphas = (1, 3) if smoke else ALPHAS
        return [Job(question, f"α = {a}", QUICK, {"alpha": a}, x=a) for a in alphas]
    if question in ("beta", "gamma"):
        sign = {"beta": "β", "gamma": "γ"}[question]
        settings, more = (SMALL, SHALLOW) if question == "beta" else (QUICK, {})
        hours = f"{question}_hours"
        return [
            Job(question, f"{sign} = {h} h", settings, more | {hours: h}, x=h)
            for h in (HOURS[-2:] if smoke else HOURS)
        ]
    if question == "graphs":
        names = ("everybody", "ring") if smoke else None
        return [Job(question, n, QUICK, {}, graph=n) for n in names or GRAPHS]
    if question == "messages":
        named = list(MESSAGES.items())[: 2 if smoke else None]
        return [
            Job(question, name, QUICK | {"messages": each}, {}) for name, each in named
        ]
    noise = lambda z: QUICK | {"noise_multiplier": z, "clip_norm": CLIP_NORM}
    return [
        Job(question, told, noise(z), {}, x=z)
        for z in (NOISE[:2] if smoke else NOISE)
        for told in (f"noise {z:g} × clip norm" if z else "no noise",)
    ]


GRAPHS = ("everybody", "4-regular", "random, 0.3", "ring", "nobody")


SMOKE = {"lookback": 20, "every": 10, "features": 4, "hidden_sizes": (4,)}


def config(job, smoke) -> energy.PFDRLConfig:
    """Returns the config of a job; small for a smoke test."""
    settings = dict(job.settings)
    if smoke:
        forecast = settings.get("forecast", QUICK["forecast"])  # Compiles faster.
        settings["forecast"] = energy.ForecastConfig(kind=forecast.kind, **SMOKE)
        settings |= {
            "hidden_sizes": (8, 8),
            "forecaster_steps": 1,
            "forecaster_batch_size": 4,
        }
        settings["dqn"] = energy.DQNConfig(num_envs=20, batch_size=8)
    return energy.PFDRLConfig(**settings)


def hyper(job, smoke) -> dict:
    """Returns the hyper-parameters of a job; fewer layers for a smoke test."""
    return ({"alpha": 1} if smoke else {}) | job.hyper
