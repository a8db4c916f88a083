"""report: what its forms must not lose. LaTeX through TeX, the page in a browser, weak scaling alone, other
experiments, notes, prices."""
import json
import os
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from drawn import Browser, needs_browser, plots
from page import Page
from program import ProgramTest
from report_test import PAPER, cell, markdown_rows, sweep

# Tables that are longer than a page, beside sentences that are.
LONG = [cell(cpus, batch, 1000.0 / cpus + batch / 100, "scaled", spread=[1.0, 9999.0], repeats=[1.0, 9999.0],
             reason="repeat 2 failed: killed" if cpus == 7 else "",
             limits={"what": "compute",
                     "why": f"sentence {cpus} {batch} " + "with more words than a line has room for " * 3})
        for cpus in range(1, 25) for batch in (128, 1024)]


class ReportForms(ProgramTest):
    def reported(self, table, *words, folder="s", **environment):
        os.makedirs(self.path(folder), exist_ok=True)
        self.write(self.path(folder, "cells.json"), table)
        return self.expect(0, "report", folder, *words, **environment)

    @unittest.skipUnless(shutil.which("pdflatex"), "needs pdflatex")
    def test_tex_loses_no_row(self):
        self.reported(sweep(*LONG, cell(25, 128, None, "n/a", reason="memory")), "--price-per-hour", "3")
        for _ in range(2):  # columns of long tables settle in the second
            done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
                                  cwd=self.path("s"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  errors="replace", timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        for lost in (r"Float too large", r"Overfull \\vbox", r"Overfull \\hbox \((\d{3,}|[2-9]\d)"):
            self.assertIsNone(re.search(lost, done.stdout), done.stdout[-3000:])
        if not shutil.which("pdftotext"):
            return
        text = subprocess.run(["pdftotext", "-layout", "report.pdf", "-"], cwd=self.path("s"), stdout=subprocess.PIPE,
                              text=True, check=True, timeout=60).stdout
        for cpus in range(1, 25):
            for batch in (128, 1024):
                self.assertIn(f"sentence {cpus} {batch} ", re.sub(r"\s+", " ", text))
        self.assertGreaterEqual(len(re.findall(r"^ *24 CPUs, batch 1024", text, re.M)), 2)  # limits, spread

    def test_weak_scaling_alone_is_a_report(self):
        weak = [cell(n, 32 * n, 100.0 / n * (1 + 0.25 * (n - 1)), "scaled", batch_per_rank=32, gflops=10.0 * n,
                     final_accuracy=0.5, seconds_to_target=7.0) for n in (1, 2)]
        done = self.reported(sweep(*weak), "--price-per-cpu-hour", "36")
        for text in (done.stdout, self.text_of("s/report.md")):
            self.assertIn("62.5 s per epoch (scaled) on 2 CPUs, batch 32 per rank", text)
            self.assertIn("All figures are scaled", text)
            self.assertIn(["32", "100", "62.5"], markdown_rows(text))
            self.assertEqual(re.findall("^## (.*)$", text, re.M)[0], "Weak scaling")
        titles = re.findall("^## (.*)$", self.text_of("s/report.md"), re.M)
        for title in ("GFLOP/s and share of the peak", "Cost of an epoch", "Accuracy and loss"):
            self.assertIn(title, titles)
        rows = markdown_rows(self.text_of("s/report.md").split("## Cost")[1])
        self.assertIn(["32", "1.00", "1.25"], rows)
        self.assertIn("7.00", self.text_of("s/report.md").split("## Time to the target")[1])

    def test_a_published_table_of_another_experiment(self):
        for more, ratios in (({}, True), ({"model": "vgg16", "image_size": 224}, False),
                             ({"images_per_epoch": 50000}, False)):
            self.reported(sweep(cell(1, 128, 439.0), **more), "--reference", PAPER)
            rows = markdown_rows(self.text_of("s/report.md").split("## Beside the published")[1])
            ratio = [r for r in rows if r[0] == "128 ratio"]
            self.assertEqual([r[1] for r in ratio], ["0.500"] if ratios else [])
            self.assertIn("439", [r for r in rows if r[0] == "128 ours"][0])
            self.assertEqual(self.json_of("s/report.json")["cells"][0]["reference_ratio"],
                             0.5 if ratios else None)
        self.assertIn("images per epoch (22500, ours is 50000)", self.text_of("s/report.md"))
        self.write("odd.csv", "# image_size=big\ncpus,batch,seconds_per_epoch\n1,128,5\n")
        self.expect(65, "report", "s", "--reference", "odd.csv", says=["line 1", "image_size"])

    def test_prices_go_where_they_should(self):
        self.reported(sweep(cell(1, 128, 3600.0), cell(1, 128, 360.0, backend="cuda")),
                      "--price-per-hour", "cpu:2", "--price-per-cpu-hour", "cuda:3")
        costs = {c["backend"]: c["cost"] for c in self.json_of("s/report.json")["cells"]}
        self.assertEqual(costs, {"cpu": 2, "cuda": 3 * 0.1})
        before = os.listdir(self.path("s"))
        for words, says in ((["--price-per-hour", "gpu:12"], "--price-per-hour gpu:12"),
                            (["--price-per-cpu-hour", "cpu:1,x:12"], "--price-per-cpu-hour x:12"),
                            (["--price-per-hour", "1", "--price-per-cpu-hour", "2"], "both"),
                            (["--price-per-hour", "cpu:1", "--price-per-cpu-hour", "cpu:2"], "backend cpu")):
            self.expect(2, "report", "s", *words, says=[says])
        self.expect(2, "report", "--diff", "s", "s", "--price-per-cpu-hour", "2", says=["--price-per-cpu-hour with"])
        self.assertEqual(os.listdir(self.path("s")), before)

    def test_the_figure_is_an_svg_whose_texts_are_texts(self):
        hostile = "m'\n`touch t1` $(touch t2) <b>&\"; system('touch t3') #"
        cells = [cell(1, 128, 200.0), cell(2, 128, 110.0, spread=[100.0, 120.0], repeats=[100.0, 110.0, 120.0])]
        self.reported(sweep(*cells, model=hostile), "--reference", PAPER)
        figure = xml.etree.ElementTree.fromstring(self.text_of("s/seconds.svg"))
        texts = " ".join(t for e in figure.iter() for t in (e.text or "", e.tail or ""))
        for text in ("Seconds per epoch, m'", "batch 128", "measured", "published", "ideal", "CPUs"):
            self.assertIn(text, texts)
        self.assertFalse([n for n in os.listdir(self.path(".")) if n.startswith("t")])

    def test_a_table_without_times_leaves_no_figure(self):
        os.makedirs(self.path("s"))
        self.write("s/seconds.svg", "<svg></svg>")
        self.reported(sweep(cell(1, 128, None, "n/a", reason="memory")))
        self.assertFalse(os.path.exists(self.path("s/seconds.svg")))

    @needs_browser
    def test_the_page_draws_in_a_browser(self):
        runs = {"runs": ["r"]}
        os.makedirs(self.path("s/r"))
        with open(self.path("s/r/metrics.jsonl"), "w") as f:
            for step in range(1, 30):
                f.write(json.dumps({"type": "step", "step": step, "images": 128, "loss": 1 / step, "accuracy": 0.5,
                                    "seconds": 0.5}) + "\n")
        budget = {"budget": {"forward": 3.0, "backward": 4.0}}
        self.reported(sweep(cell(1, 128, 10.0, **runs, **budget, command="./cputrain --batch 128 \"<b>\""),
                            cell(2, 128, 6.0), cell(1, 256, None, "n/a"),
                            cell(2, 256, 5.0), cell(4, 256, 3.0), cell(1, 128, 2.0, backend="cuda", **runs),
                            cell(1, 128, 20.0, batch_per_rank=128, **runs, **budget),
                            cell(2, 128, 12.0, batch_per_rank=128, ranks=1, threads=2)))
        text = self.text_of("s/report.html")
        Page(text)
        self.assertIn('data-command="./cputrain --batch 128 &quot;&lt;b&gt;&quot;"', text)
        with Browser(self.path("s")) as browser:
            page = browser.open("report.html", "document.querySelector('table')")
            names = ["seconds", "speed-up", "efficiency", "budget", "loss", "accuracy", "weak"]
            self.assertEqual(plots(self, browser, page), [(name, "drawn") for name in names])
            keys = browser.run(page, "[...document.querySelectorAll('.keys button')].map(b => b.lastChild.data)")
            for key in ("ideal, against 1", "ideal, against 2", "cpu, batch 128", "cuda, batch 128",
                        "cpu, weak scaling", "cpu, batch 128 per rank, 2 threads"):
                self.assertIn(key, keys)
            # Loss and accuracy, by images and by seconds.
            self.assertEqual(browser.run(page, "document.querySelectorAll('.switch').length"), 2)
            self.assertEqual(browser.run(page, "document.querySelector('button.figure').title"),
                             './cputrain --batch 128 "<b>"')

    @needs_browser
    def test_the_page_begins_with_its_plot_and_has_few_keys(self):
        times = {1: 400.0, 2: 220.0, 4: 130.0}
        cells = [cell(n, batch, seconds / (1 + batch / 2048), backend=backend) for n, seconds in times.items()
                 for batch in (128, 256, 512, 1024) for backend in ("cpu", "reference")]
        self.reported(sweep(*cells), "--reference", PAPER)
        text = self.text_of("s/report.html")
        self.assertLess(text.index('class="headline"'), text.index("<details><summary>Where these figures are from"))
        with Browser(self.path("s")) as browser:
            page = browser.open("report.html", "document.querySelector('table')")
            self.assertIn(("seconds", "drawn"), plots(self, browser, page))
            self.assertLess(text.index('data-plot="seconds"'), text.index('id="card"'))
            keys = browser.run(page, """[...document.querySelectorAll('header .keys button')].map(b =>
                [b.lastChild.data, b.querySelector('line').getAttribute('stroke-dasharray')])""")
            self.assertEqual([text for text, _ in keys], ["batch 128", "batch 256", "batch 512", "batch 1024", "cpu",
                                                          "reference", "published", "ideal"])
            self.assertEqual(len({dash for _, dash in keys[4:]}), 4, keys)
            shown = """(chart => chart.data.datasets.filter((_, i) => chart.isDatasetVisible(i)).map(s => s.kind))
                (Chart.getChart(document.querySelector('header canvas')))"""
            self.assertIn("published", browser.run(page, shown))
            browser.run(page, "document.querySelectorAll('header .keys button')[6].click()")
            self.assertEqual(set(browser.run(page, shown)), {"cpu", "reference", "ideal"})
            widths = "[...new Set([...document.querySelectorAll('.plot canvas')].map(c => c.clientWidth))]"
            for window in 1280, 390:
                browser.call("Emulation.setDeviceMetricsOverride", page, width=window, height=900, deviceScaleFactor=1,
                             mobile=False)
                self.assertEqual(len(browser.run(page, widths)), 1, window)
                self.assertTrue(browser.run(page, "document.documentElement.scrollWidth <= window.innerWidth"), window)


if __name__ == "__main__":
    unittest.main()
