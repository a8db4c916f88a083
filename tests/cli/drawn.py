"""What plots of a page became in a Chromium: tests that have none are skipped."""
import os
import shutil
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts", "formats"))
from browser import Browser  # noqa: E402, F401  (tests have it from here)

PLOTS = """[...document.querySelectorAll('[data-plot]')].map(plot =>
    [plot.dataset.plot, plot.querySelector('canvas') ? 'drawn' : plot.textContent])"""


def needs_browser(test):
    return unittest.skipUnless(shutil.which("chromium"), "needs chromium")(test)


def plots(test, browser, page):
    """The name of each plot with "drawn", or with what the page says in its place. The page's whole text would not
    do: it holds the scripts, and so every message. Skips the test where no page has plots."""
    found = browser.run(page, PLOTS)
    if not found:
        test.skipTest("this build has no Chart.js")
    return [tuple(plot) for plot in found]
