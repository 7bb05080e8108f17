"""What stands around the tables of the comparison with PrivateHub: words alone."""

import _hub_jobs as work

PAPER = (
    "The chapter's table 4.2 stands beside ours; it tells of CASAS's homes and of an "
    "office of its own, ours are other homes (van Kasteren's, MIT's, Ordonez's), the "
    "rooms of the Room Climate Datasets and an office of UCI: rows stand side by side "
    "in their order, not because places are alike. Its accuracy is not defined; what "
    "it tells of classes to hide we take for the share of their windows that are "
    "recognised, which is our column recall. Every accuracy here is of test windows "
    "that were rewritten; they end each stretch of an activity in rooms, which share "
    "their day with training, and are the last fifth of the days of homes. In rooms "
    "split by measurements of other days raw windows told too little to hide anything "
    "(56 % of classes shown, 54 % balanced of those hidden), so that split was left; "
    "the homes were chosen by what raw windows tell of them, too. The judge "
    "is a dense network, trained on raw windows, which nothing was fine-tuned with: "
    "every generator's own classifier is convolutional. "
    f"{work.CHOSEN} Balanced and AUC: of a class "
    "to hide against all others, by chance 50 %; several classes have their figures "
    "in the order named. Retrained: the best of a dense network and a forest that "
    "learn, from rewritten training windows with labels, which are of a class to "
    "hide: balanced, too, and nobody's in the chapter. Raw windows tell what there "
    "was to tell. What was trained stands in the rows: networks are small and steps "
    "few beside the chapter's 200 epochs on a GPU, so that a place takes minutes on "
    "two cores. What a new home is compared with has as few steps on its own windows. "
    "Forecasts are of an LSTM that reads every fourth sample; held: that all stays as "
    "it is. What really came may be foretold well for another reason: a window is "
    "rewritten whole, its end too. Of windows that are flat all is foretold, so an "
    "error far below raw is no good."
)
TITLES = {
    "table 4.2": "As table 4.2 lies: ours (the chapter's), accuracies in percent",
    "methods": "Classes shown and hidden (RQ1, RQ2: table 4.2, figure 4.8)",
    "switched": "Windows asked for, of their own class and of another",
    "forecasts": "What sensors are there for (RQ3: figure 4.9)",
    "missing": "Two classes without labels, all made anew (RQ4: figure 4.10)",
    "new_home": "A new home, with and without others' windows first",
    "quality": "How like real windows synthetic ones are",
    "steps": "Fewer steps, of DDIM and of DPM-Solver++ (2M)",
    "motionsense": "MotionSense, rewritten (PrivDiffuser's authors: 96.32, 49.96)",
    "speed": "Speed",
}
