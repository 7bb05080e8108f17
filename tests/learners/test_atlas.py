"""Tests of Atlas's guarantees for whole clients and for released scores."""

import jax
import pytest

import jaxanon as ja
from jaxanon.federated.engine import layout
from jaxanon.learners.atlas import OF_ATLAS, AtlasConfig, of_atlas
from jaxanon.privacy import SampledGaussian, epsilon_spent, ledger
from jaxanon.report.text import guaranteed
from jaxanon.training import run_folder

pytestmark = pytest.mark.slow


def test_released_scores_are_paid_for_beside_the_steps(small):
    learner = small("atlas", scores="released")
    guarantee = learner.guarantee
    told = guarantee.report(3)
    steps, scores = told["parts"]
    assert [steps["what"], scores["what"]] == ["gradients", "scores"]
    assert (steps["steps"], scores["steps"]) == (6, 3)
    assert 0.197 < scores["epsilon"] <= 0.2 < steps["epsilon"] < told["epsilon"]
    assert 1.97 < told["epsilon"] <= 2.0
    # By hand, from the reported multipliers: three sums of scores and six of steps.
    each = [
        SampledGaussian(
            noise_multiplier=part["noise_multiplier"],
            sampling_probability=4 / 64,
            steps=part["steps"],
        )
        for part in told["parts"]
    ]
    assert epsilon_spent(each, 1e-5) == pytest.approx(told["epsilon"], rel=0.02)
    hyper = learner.init(jax.random.key(0)).hyper
    assert float(hyper["score_multiplier"]) == pytest.approx(guarantee.score_multiplier)
    assert guarantee.noise_multiplier > small("atlas").guarantee.noise_multiplier
    # This noise cannot be removed either.
    with pytest.raises(ValueError, match="score_multiplier follows from epsilon"):
        learner.init(jax.random.key(0), score_multiplier=0.0)


def test_a_clients_budget_is_of_unsampled_updates_twice_a_clip_norm_apart(small):
    settings = {"privacy_unit": "client", "client_fraction": 0.4, "local_steps": 7}
    guarantee = small("atlas", **settings).guarantee
    told = guarantee.report(3)
    assert told["steps"] == 3 and told["sampling_probability"] == 1.0
    assert told["neighbours"] == "any other data of a client in place of its own"
    # Three Gaussians equal one with noise smaller by √3, at half the multiplier.
    one = SampledGaussian(noise_multiplier=guarantee.noise_multiplier / 2 / 3**0.5)
    assert epsilon_spent([one], 1e-5) == pytest.approx(told["epsilon"], rel=1e-3)
    assert 1.97 < told["epsilon"] <= 2.0
    # The inflated claim of interpretation C does not affect noise without scores.
    hidden = {"scores": "hidden", "privacy_unit": "client"}
    kept = [
        small("atlas", noise_interpretation="C", **more).guarantee.holds
        for more in (hidden, {})
    ]
    assert kept == [True, False]
    with pytest.warns(UserWarning, match="delta should be well below 1 / 5"):
        small("atlas", privacy_unit="client", delta=0.3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"scores": "released", "clipping": "scores"},
            (
                "an example of a",
                "gradients alone:",
                "scores alone: 0.1",
            ),
        ),
        (
            {"privacy_unit": "client", "scores": "released"},
            ("any other data of a client", "noisy updates", "scores alone: 0.1"),
        ),
        ({}, ("an example of a client that has others more or less",)),
        (
            {"privacy_unit": "client"},
            ("any other data of a client in place of its own",),
        ),
    ],
)
def test_what_every_form_keeps_is_in_its_ledger(settings, words, trained, tmp_path):
    """Checks the guarantee and its exceptions in the run's ledger."""
    more = {"max_examples": 4} if settings.get("privacy_unit") == "client" else {}
    run = trained("atlas", epochs=2, output_dir=tmp_path / "run", **settings, **more)
    privacy = ledger.read(tmp_path / "run")
    asked = run.method.guarantee.report(2)
    assert privacy.pop("rounds") == {"done": 2, "asked": 2}
    assert privacy.keys() == asked.keys() and len(privacy["parts"]) == 2 * bool(
        settings.get("scores")
    )
    # The report lists personal layers and everything else without noise.
    assert set(OF_ATLAS) < set(privacy["not_covered"])
    assert "local fine-tuning without noise" in guaranteed(privacy)[1]
    assert privacy["epsilon"] == pytest.approx(asked["epsilon"], rel=1e-5)
    kept = guaranteed(privacy)[0]
    assert kept.startswith("Everything that clients send satisfies epsilon")
    assert all(word in kept for word in words)
    again = run_folder.open_run(tmp_path / "run")
    assert again.method.config == run.method.config


def test_public_scores_and_layers_sent_one_by_one(trained, data, tmp_path):
    """Shares the first of two layers; masks keep their initial values."""
    public = {"dense_1": 0.9, "dense_2": 0.3}
    settings = {"scores": "public", "public_scores": public, "send_slots": 3}
    run = trained("atlas", epochs=1, output_dir=tmp_path / "run", **settings)
    kept = run.state.own
    assert kept.shared["dense_1"].all() and not kept.shared["dense_2"].any()
    assert not any(leaf.any() for leaf in jax.tree.leaves(kept.masks))
    sizes = {name: layout.num_bytes(x) for name, x in run.state.params.items()}
    sent = run.history[-1]["losses"]["bytes_up"]
    assert sent == sizes["dense_1"] + 4
    again = run_folder.open_run(tmp_path / "run")
    assert again.method.config == run.method.config
    report = ja.evaluate(again, data)
    told = report["shuffled"]
    assert told["slots"] == 3 and told["chance"] == pytest.approx(1 / 5)
    assert told["linked"] * 5 in range(6)  # The fraction linked among five messages.
    page = (tmp_path / "run" / "report.html").read_text()
    page = " ".join(page.split())
    assert "at random in 3 slots" in page and "(chance level: 20 %)" in page
    assert ja.evaluate(trained("atlas", epochs=1), data)["shuffled"] is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scores": "public"}, "must be given if and only if scores='public'"),
        (
            {"scores": "public", "public_scores": {"dense_1": 0.7, "gone": 0.7}},
            r"layers \['dense_1', 'dense_2'\], got \['dense_1', 'gone'\]",
        ),
        (
            {"scores": "public", "public_scores": {"dense_1": 0.7, "dense_2": 7.0}},
            "must be in .0, 1., got 7.0 for 'dense_2'",
        ),
        ({"scores": "hidden"}, "privacy_unit must be 'client' with scores='hidden'"),
        (
            {"scores": "released", "epsilon": 0.0},
            "epsilon must be > 0 for scores='released'",
        ),
    ],
)
def test_atlas_says_what_was_wrong(settings, message, small):
    with pytest.raises(ValueError, match=message):
        small("atlas", **settings)


@pytest.mark.parametrize(
    ("epsilon", "share", "told"),
    [(2.0, 0.9, "epsilon"), (8.0, 0.05, "more than the accountant can compute")],
)
def test_what_scores_leave_is_told_however_little_it_is(epsilon, share, told):
    """Tests batches that often reach their maximum, which "rdp" does not support."""
    public = {"dense_1": 0.9, "dense_2": 0.3}
    config = AtlasConfig(
        **{
            "noise_interpretation": "C",
            "epsilon": epsilon,
            "max_examples": 1100,
            "batch_size": 16,
            "max_rounds": 3,
        },
        **{"scores": "public", "public_scores": public, "local_steps": 5},
    )
    guarantee = of_atlas(config, 9)._replace(least_share=share)
    found = guarantee.report(3)
    assert (found["true"]["epsilon"] is None) == (told != "epsilon")
    words = guaranteed(found)[1]
    assert f"the same releases cost {told}" in words
    assert words.endswith("which holds because the scores are public.")
    assert "must not depend on private data" in found["not_covered"][-1]


def test_what_holds_has_no_other_truth():
    config = AtlasConfig(noise_interpretation="C", scores="hidden", max_rounds=2)
    assert of_atlas(config, 9).report(2)["true"] is None
