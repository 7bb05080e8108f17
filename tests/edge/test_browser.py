"""The dashboard in a headless Chromium: drawings, texts and controls."""

import base64
import itertools
import shutil
import time

import dashboard_stand_ins as stand_ins
import numpy as np
import pytest

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="selenium is not installed"
)


CHROMIUM = shutil.which("chromium", path="/usr/bin:/usr/local/bin")
DRIVER = shutil.which("chromedriver", path="/usr/bin:/usr/local/bin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="no browser is installed (Debian: chromium chromium-driver)",
    ),
]
WIDTHS = pytest.mark.parametrize("width", [1280, 360])
# Canvas colours of each side, light and dark.
INK = {"raw": (178, 58, 23), "safe": (11, 106, 102)}
DARK_INK = {"raw": (255, 155, 115), "safe": (98, 210, 196)}

# The last block is drawn completely.
AT_REST = "over && play >= store.blocks.at(-1).end - 1e-6"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    folder = tmp_path_factory.mktemp("profile")
    # Root in a container has neither a sandbox nor much shared memory.
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    options.add_argument(f"--user-data-dir={folder}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def _open(chromium, address, width, scheme="light"):
    chromium.get("about:blank")
    chromium.get_log("browser")
    about = {"width": width, "height": 900, "deviceScaleFactor": 1}
    chromium.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", about | {"mobile": width < 500}
    )
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    chromium.get(address)


def _wait(chromium, script, seconds=60):
    """Waits until the script's value is true, and returns it."""
    deadline = time.monotonic() + seconds
    while not (value := chromium.execute_script(f"return {script}")):
        assert time.monotonic() < deadline, script
        time.sleep(0.05)
    return value


def _pixels(chromium, side):
    """Returns ``uint8[height, width, 4]`` of a canvas."""
    wide, high, numbers = chromium.execute_script(
        "const shown = document.getElementById(arguments[0]);"
        # Otherwise Chromium writes a message.
        "const c = document.createElement('canvas');"
        "c.width = shown.width; c.height = shown.height;"
        "const pen = c.getContext('2d', {willReadFrequently: true});"
        "pen.drawImage(shown, 0, 0);"
        "const d = pen.getImageData(0, 0, c.width, c.height);"
        "let s = ''; for (const v of d.data) s += String.fromCharCode(v);"
        "return [c.width, c.height, btoa(s)];",
        side,
    )
    data = base64.b64decode(numbers)
    return np.frombuffer(data, np.uint8).reshape(high, wide, 4)


def _drawn(pixels, ink):
    """Returns ``bool[height, width]``: pixels of a canvas with a colour."""
    return np.abs(pixels[..., :3].astype(int) - ink).max(-1) < 25


def _text(chromium, selector):
    return chromium.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)",
        selector,
    )


@WIDTHS
def test_what_is_drawn_and_said(chromium, width):
    with stand_ins.served(stand_ins.rows(350), speed=20.0) as (address, stop):
        _open(chromium, address, width)
        _wait(chromium, "document.getElementById('windows').textContent[0] === '1'")
        _wait(chromium, "document.getElementById('trouble').textContent.length")
        _wait(chromium, AT_REST)
        time.sleep(0.6)  # The bars stop, too.
        assert _text(chromium, "#trouble") == ["The recording has ended."]
        assert _text(chromium, "#model") == ["blinder · smartwatch · float32"]
        assert _text(chromium, "#private") == ["side"]
        assert _text(chromium, "#windows") == ["17 (1 failed)"]
        assert _text(chromium, "#latency")[0].endswith(" ms")
        (said,) = _text(chromium, "#answers p")
        assert said.endswith(
            "From the raw signal, the attacker is 97 % sure: left. "
            "From the released signal: 51 %."
        )
        for side in ("raw", "safe"):
            pixels = _pixels(chromium, side)
            ink = _drawn(pixels, INK[side])
            lanes = ink[:-22].reshape(2, -1, ink.shape[1])
            # Each channel from the axis to the right edge, over most of the columns.
            assert (lanes.any(1)[:, 48:].mean(1) > 0.8).all(), side
        # Half the height on the same axes.
        height = [
            np.ptp(np.flatnonzero(_drawn(_pixels(chromium, side), ink)[:94].any(1)))
            for side, ink in INK.items()
        ]
        assert 0.4 < height[1] / height[0] < 0.65
        wide = chromium.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        names = _text(chromium, "#raw-asks .name")
        assert names == ["left", "right", "curls", "rows", "rest"]
        numbers = _text(chromium, "#raw-asks .number")
        assert numbers == ["97 %", "3 %", "90 %", "6 %", "4 %"]
        assert _text(chromium, "#safe-asks .number")[:2] == ["51 %", "49 %"]
        assert _text(chromium, "#safe-asks .scale") == ["chance 50 %", "chance 33 %"]
        fills, marks = (
            chromium.execute_script(
                "return [...document.querySelectorAll(arguments[0])].map(e => {"
                "const a = e.getBoundingClientRect(), b = e.parentElement"
                ".getBoundingClientRect(); return (a.right - b.left) / b.width; })",
                f"#raw-asks .{name}",
            )
            for name in ("fill", "chance")
        )
        np.testing.assert_allclose(fills, [0.97, 0.03, 0.9, 0.06, 0.04], atol=0.01)
        np.testing.assert_allclose(marks, [1 / 2] * 2 + [1 / 3] * 3, atol=0.015)
        stop.set()
        _wait(
            chromium,
            "document.getElementById('trouble').textContent.startsWith('The dash')",
        )
        assert _text(chromium, "#trouble") == ["The dashboard has stopped."]
    time.sleep(0.5)
    assert chromium.get_log("browser") == []


@WIDTHS
def test_a_gap_is_shaded_and_labelled(chromium, width):
    with stand_ins.served(stand_ins.rows(140), speed=None) as (address, _):
        _open(chromium, address, width)
        _wait(chromium, AT_REST)
        _wait(chromium, "document.getElementById('safe-note').textContent.length")
        gap = ["Gap: the model was too late (0.8–1.2 s)"]
        assert _text(chromium, "#safe-note") == gap
        assert _text(chromium, "#raw-note") == [""]
        raw, safe = (
            _drawn(_pixels(chromium, side), ink)[:-22].any(0)
            for side, ink in INK.items()
        )
        inside = np.flatnonzero(raw & ~safe)
        wide = np.ptp(np.flatnonzero(raw))
        # 0.4 s without a line, of the 2.8 s shown.
        assert 0.09 * wide < len(inside) < 0.18 * wide
        assert np.ptp(inside) < 0.18 * wide
        # Shaded: darker than the background, unlike the raw side.
        middle = int(np.median(inside))
        shade = _pixels(chromium, "safe")[60:90, middle - 4 : middle + 4, :3]
        assert shade.mean() < 243
    assert chromium.get_log("browser") == []


def test_pause_by_key_and_button(chromium):
    def moves(seconds):
        first, until = _pixels(chromium, "raw"), time.monotonic() + seconds
        while time.monotonic() < until:
            if not np.array_equal(first, _pixels(chromium, "raw")):
                return True
        return False

    with stand_ins.served(stand_ins.rows(100_000), speed=2.0) as (address, _):
        _open(chromium, address, 1280)
        _wait(chromium, "parseInt(document.getElementById('windows').textContent) > 3")
        assert moves(10)
        body = chromium.find_element("tag name", "body")
        button = chromium.find_element("id", "pause")
        for press in (lambda: body.send_keys(" "), button.click):
            press()
            assert (button.text, button.get_attribute("aria-pressed")) == (
                "Resume",
                "true",
            )
            _wait(chromium, "!dirty")  # It is drawn once more, then stays.
            windows = _text(chromium, "#windows")
            assert not moves(0.4)
            assert _text(chromium, "#windows") == windows
            button.send_keys("\n")  # By keyboard, as without a mouse.
            assert button.text == "Pause"
            assert moves(10)
        assert _text(chromium, "#windows") != windows
    assert chromium.get_log("browser") == []


def test_memory_is_bounded_while_paused(chromium):
    with stand_ins.served(stand_ins.rows(100_000), speed=100.0) as (address, _):
        _open(chromium, address, 1280)
        _wait(chromium, "parseInt(document.getElementById('windows').textContent) > 3")
        chromium.find_element("id", "pause").click()
        _wait(chromium, "store.t[store.t.length - 1] > 200")
        kept = chromium.execute_script("return [store.t.length, store.blocks.length]")
        # 6 s are shown and 8 s more stored, in steps of 4 s; blocks are 0.4 s long.
        assert kept[0] < 50 * 21 and kept[1] < 21 / 0.4
    assert chromium.get_log("browser") == []


def test_signals_scroll_smoothly(chromium):
    with stand_ins.served(stand_ins.rows(100_000)) as (address, _):
        _open(chromium, address, 1280)
        _wait(chromium, "parseInt(document.getElementById('windows').textContent) > 6")
        places = [
            chromium.execute_async_script(
                "const done = arguments[0];"
                "requestAnimationFrame(now => done([play, now / 1000]))"
            )
            for _ in range(60)
        ]
        for (before, then), (after, now) in itertools.pairwise(places):
            # Never backwards, and blocks of 0.4 s do not appear all at once.
            assert 0 <= after - before < 2 * (now - then) + 0.1
        assert places[-1][0] > places[0][0]


def test_dark(chromium):
    with stand_ins.served(stand_ins.rows(100), speed=None) as (address, _):
        _open(chromium, address, 1280, "dark")
        _wait(chromium, "parseInt(document.getElementById('windows').textContent) > 4")
        time.sleep(0.5)
        for side, ink in DARK_INK.items():
            assert _drawn(_pixels(chromium, side), ink).sum() > 300
        ground = chromium.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )
        assert ground == "rgb(20, 23, 26)"
    assert chromium.get_log("browser") == []
