"""Every name that ``evaluate(..., attacks=...)`` takes, and what it stands for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxanon import trial_attacks, trial_leaks
from jaxanon.attacks import ATTACKERS
from jaxanon.trial_case import NAMES

ATTACKS: dict[str, Callable] = {
    "intrusive": trial_attacks.intrusive,
    "released": trial_attacks.released,
    "per-class": trial_attacks.per_class,
    "stream": trial_attacks.stream,
    "pairs": trial_attacks.pairs,
    "self-training": trial_leaks.self_training,
    "inversion": trial_leaks.inversion,
    "fingerprint": trial_leaks.fingerprint,
    "membership": trial_leaks.membership,
}
assert tuple(ATTACKS) == NAMES
DEFAULT = ("mlp", "forest")


class Chosen(NamedTuple):
    """Who attacks, and in which further ways."""

    attackers: tuple[str, ...]
    attacks: tuple[str, ...]


def choose(names: Sequence[str] | None) -> Chosen:
    """Tells attackers from attacks; without an attacker there are the default two.

    Raises:
      ValueError: if nothing is named, or something that there is not.

    Example:
      >>> choose(["forest", "stream"])
      Chosen(attackers=('forest',), attacks=('stream',))
      >>> choose(None) == choose(["released"])._replace(attacks=())
      True
      >>> choose(["released"]).attackers
      ('mlp', 'forest')
    """
    if names is None:
        return Chosen(DEFAULT, ())
    if isinstance(names, str) or not names:
        raise ValueError(
            f"attacks must be a tuple with at least one of {sorted(ATTACKERS)} or "
            f"{list(ATTACKS)}, got {names!r}."
        )
    for name in names:
        if name not in ATTACKERS and name not in ATTACKS:
            raise ValueError(
                f"attacks must be among attackers, {sorted(ATTACKERS)}, and what is "
                f"tried besides, {list(ATTACKS)}; got {name!r}."
            )
    known = dict.fromkeys(names)
    attackers = tuple(name for name in known if name in ATTACKERS)
    return Chosen(
        attackers or DEFAULT, tuple(name for name in known if name in ATTACKS)
    )
