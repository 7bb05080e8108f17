"""Valid and invalid values of settings, drawn by hypothesis."""

import numpy as np
from hypothesis import strategies as st

NUMBERS = st.one_of(
    st.sampled_from([-1, 0, 1, 2, 7, 1000, 2**31, 10**30, -0.5, 0.5, 1.5, 1e-300]),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), np.float32(0.5)]),
    st.booleans(),
)
WORDS = st.sampled_from(["", "x", "stochastic", "official", "paper", b"x", None])
VALUES = st.one_of(
    NUMBERS,
    WORDS,
    st.lists(st.one_of(NUMBERS, WORDS), max_size=3).map(tuple),
    st.sampled_from([[], [1], {}, object(), np.ones(2), (((),),)]),
)
