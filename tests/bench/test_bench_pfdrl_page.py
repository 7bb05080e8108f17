"""What figures of bench/pfdrl.py make of homes in which nothing can be saved."""

from unittest import mock

import numpy as np


def test_homes_without_standby_save_no_share_of_it(bench):
    """And are no dot of the figure: 0 % would say that they failed to."""
    saved, standby = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[4.0, 0.0]] * 2)
    shares = bench("_pfdrl_runs").shares_of_homes(saved, standby)
    assert shares == [0.375, None]
    row = {"question": "methods", "place": "street", "name": "PFDRL", "x": None}
    rows = [row | {"by_home": shares}, row | {"by_home": [0.625, None]}]
    page = bench("_pfdrl_page")
    with mock.patch.object(page, "picture", lambda drawn, caption: drawn):
        drawn = page.by_home(rows)
    (axis,) = drawn.axes
    assert axis.patches[0].get_height() == 50
    assert axis.lines[-1].get_ydata().tolist() == [37.5, 62.5]
