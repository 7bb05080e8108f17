"""How the figures of each further attack were obtained, in plain words."""

TITLES = {
    "intrusive": "Intrusive inference by every attacker",
    "released": "Re-identification as the published programs report it",
    "per-class": "One attacker for each public class",
    "stream": "An attacker who follows a person",
    "pairs": "Two streams of one person",
    "self-training": "An attacker with hardly any labels",
    "inversion": "Windows rebuilt from gradients",
    "fingerprint": "Chosen models as a fingerprint",
    "membership": "Training windows told from others",
}
METHODS = {
    "intrusive": "Every attacker is trained on all raw training windows, and reads "
    "anonymized test windows without having seen one.",
    "released": "The attacker is scored on the very windows that he trained on, a "
    "share of the anonymized test windows. This is training accuracy: it stands here "
    "to be compared with published tables and says little of what he reads elsewhere.",
    "per-class": "As re-identification, by one attacker for each class of the public "
    "attribute, which he takes as known.",
    "stream": "The attackers of the re-identification read consecutive windows of one "
    "subject, cut into runs that do not overlap. Their guesses are counted, or their "
    "log-odds averaged, and each run counts once: a private attribute does not change "
    "from window to window, so the evidence adds up.",
    "pairs": "Each test subject's anonymized windows are halved in time. An attacker "
    "describes a half by the mean of what he says of its windows (of whom among the "
    "training subjects he is reminded; untrained: of their statistics), and takes for "
    "each first half the second that is most alike. AUC and equal error rate are those "
    "of the question whether two halves are of one person.",
    "self-training": "A support vector machine learns one training window in a hundred "
    "of each class, at least two, and names the anonymized test windows; those it is "
    "surest of are taken for true and learned as well, in rounds.",
    "inversion": "For a few test windows the gradient that a client's step on one "
    "would have is inverted by deep leakage from gradients, and where a network begins "
    "with a dense layer, in closed form. A correlation near 1 is the window itself. "
    "Clients send means over more windows, or what many steps add up to.",
    "fingerprint": "Of each subject's chosen models sets of p are drawn; the "
    "uniqueness is the share of them that no other subject's models contain.",
    "membership": "Training windows are told from as many test windows of the same "
    "people and classes, by their distance to the nearest synthetic window, and by how "
    "badly the generator explains them. AUC, its 95 % interval were windows "
    "independent, and how many training windows are found where 10 %, 1 % and 0.1 % of "
    "the others are taken for some. A generator that learned nothing is asked, too: "
    "what it tells, the split tells. Windows that early stopping held out count as "
    "training windows.",
}
DISTORTION = (
    "Up to 2,000 test windows are compared with what became of them: dynamic time "
    "warping of each channel in deviations of the training rows; mean, deviation, "
    "skewness, kurtosis and energy in physical units; steps by a fixed threshold "
    "(10.5 m/s²) and by jerk and pace, where acceleration has its gravity."
)
