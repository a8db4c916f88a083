"""report of single trainings: every form, folders that are damaged or hostile, and the page in a browser."""
import csv
import io
import json
import os
import shutil
import unittest

from drawn import Browser, needs_browser, plots
from page import Page
from program import SMALL, ProgramTest
from report_test import assert_golden, cell, check_latex, markdown_rows, sweep

HOSTILE = "</script><script>alert(1)<|&\n\u202e\\input{x}"


def epoch(n, accuracy, seconds, images=100):
    return {"type": "epoch", "epoch": n, "steps": 4, "images": images, "seconds": seconds, "loss": 1 / n,
            "val_loss": 0.5, "val_accuracy": accuracy, "val_images": 100, "val_seconds": 1, "settled": {"steps": 4}}


def steps(n, batch=25):
    return [{"type": "step", "step": i, "epoch": 1 + (i - 1) // 4, "images": batch, "images_seen": i * batch,
             "loss": 1 / i, "accuracy": 0.5, "lr": 0.1, "seconds": 1} for i in range(1, n + 1)]


class RunsTest(ProgramTest):
    def make(self, name, accuracies, seconds=10, ends=True, started="2026-11-25T10:00:00+0000", **config):
        folder = self.path("runs", name)
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump({"model": "dogcat", "data": "/d/photos", "image-size": 64, "batch": 25, "seed": 0,
                       "epochs": len(accuracies), "optimizer": "sgd", "lr": 0.1, "backend": "cpu", **config}, f)
        with open(os.path.join(folder, "environment.json"), "w") as f:
            json.dump({"started": started, "ranks": 2, "threads_of_rank_0": 1, "machine": {"cpu": "EPYC", "cores": 2}},
                      f)
        lines = steps(4 * len(accuracies)) + [epoch(i + 1, a, seconds) for i, a in enumerate(accuracies)]
        if ends:
            lines.append({"type": "summary", "outcome": "finished", "seconds": seconds * len(accuracies)})
        with open(os.path.join(folder, "metrics.jsonl"), "w") as f:
            f.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def report(self, *words):
        done = self.expect(0, "report", "runs", "--out", "o", *words)
        return done, {e: self.text_of("o", "report." + e) for e in ("md", "csv", "json", "tex", "html")}


class Forms(RunsTest):
    def test_every_form_has_a_row_for_each_run(self):
        self.make("first", [0.5, 0.9])
        self.make("second", [0.85, 0.8], 2, batch=50)
        done, made = self.report()
        self.assertIn("2 of 2 runs reached 0.85; the least time was that of second in epoch 1, after 2.00 s of "
                      "training (one training each).", done.stdout)
        runs = json.loads(made["json"])["runs"]
        self.assertEqual([(r["name"], r["best"], r["images_per_second"], r["outcome"]) for r in runs],
                         [("first", {"val_accuracy": 0.9, "epoch": 2, "seconds": 20}, 10, "finished"),
                          ("second", {"val_accuracy": 0.85, "epoch": 1, "seconds": 2}, 50, "finished")])
        rows = list(csv.DictReader(io.StringIO(made["csv"], newline=""), strict=True))
        self.assertEqual([(r["run"], r["best_val_accuracy"], r["batch"], r["machine"]) for r in rows],
                         [("first", "0.9", "25", "EPYC, 2 cores"), ("second", "0.85", "50", "EPYC, 2 cores")])
        for row in rows:
            self.assertNotIn(None, [*row, *row.values()])  # no line is short or long
        for rows in markdown_rows(made["md"]), Page(made["html"]).rows, check_latex(made["tex"]):
            table = {row[0]: row for row in rows}
            self.assertEqual((table["first"][1:4], table["second"][1:4]),
                             (["0.9000", "2", "20.0"], ["0.8500", "1", "2.00"]))
        for ending in "md", "tex", "html":
            self.assertIn("All 2 runs: model dogcat, data photos, images of 64x64, 2 ranks x 1 thread", made[ending])

    def test_what_differs_is_in_every_form(self):
        self.make("a", [0.5, 0.9], augment="flip", **{"label-smoothing": 0.1})
        self.make("b", [0.85, 0.8], 2, augment="flip", seed=3, **{"weight-decay": 0.001})
        done, made = self.report()
        self.assertEqual(json.loads(made["json"])["differences"], ["label-smoothing", "weight-decay", "seed"])
        self.assertEqual({r["name"]: r["differs"] for r in json.loads(made["json"])["runs"]},
                         {"a": {"label-smoothing": "0.1", "weight-decay": None, "seed": "0"},
                          "b": {"label-smoothing": None, "weight-decay": "0.001", "seed": "3"}})
        for rows in markdown_rows(made["md"]), Page(made["html"]).rows, check_latex(made["tex"]):
            self.assertEqual([[c.replace("--", "–") for c in r] for r in rows
                              if r[0] in ("label-smoothing", "augment")], [["label-smoothing", "0.1", "–"]])
        rows = {r["run"]: r for r in csv.DictReader(io.StringIO(made["csv"], newline=""), strict=True)}
        self.assertEqual([rows[n]["label-smoothing"] for n in "ab"], ["0.1", ""])
        self.assertIn("weight-decay", done.stdout)

    def test_two_trainings_are_compared(self):
        self.make("a", [0.5, 0.9], lr=0.1)
        self.make("b", [0.85, 0.8], 2, lr=0.2)
        done = self.expect(0, "report", "--diff", "runs/a", "runs/b", "--out", "d",
                           says=["a and b beside each other", "Wrote d/diff.html"])
        rows = {r[0]: r[1:] for r in markdown_rows(self.text_of("d/diff.md"))}
        self.assertEqual(rows["lr"], ["0.1", "0.2"])
        self.assertEqual(rows["best validation accuracy"], ["0.9000", "0.8500", "-0.0500", "–"])
        self.assertEqual(rows["seconds to it"], ["20.0", "2.00", "-18.0", "0.100"])
        told = self.json_of("d/diff.json")
        self.assertEqual(told["differences"], [{"key": "lr", "before": "0.1", "after": "0.2"}])
        lines = list(csv.DictReader(io.StringIO(self.text_of("d/diff.csv"), newline=""), strict=True))
        self.assertEqual((lines[0]["kind"], lines[0]["name"], lines[0]["after"]), ("configuration", "lr", "0.2"))
        check_latex(self.text_of("d/diff.tex"))
        self.assertEqual(sorted(os.listdir(self.path("runs"))), ["a", "b"])
        os.makedirs(self.path("s"))
        self.write(self.path("s", "cells.json"), sweep(cell(1, 25, 9.0)))
        os.makedirs(self.path("none"))
        for words, says in ((["runs", "runs/a"], "runs: holds 2 trainings, and --diff compares two"),
                            (["s", "runs/a"], "runs/a is a training and s a sweep"),
                            (["runs/a", "none"], "none: holds no sweep (cells.json) and no training"),
                            (["runs/a", "absent"], "absent")):
            with self.subTest(words):
                done = self.expect(65, "report", "--diff", *words, says=[says])
                self.assertNotIn("run the sweep", done.stderr if words[1] == "runs/a" else "")

    def test_words_and_tables_of_a_whole_report(self):
        """Runs of all kinds in one document; how its figures are computed has tests of its own."""
        self.make("a", [0.5, 0.57])
        self.make("b", [0.57, 0.8, 0.7], 3, seed=1, **{"data": "/d/photos"})
        self.make("large", [0.9], 20, batch=1024)
        self.make("cats", [0.99], data="/d/cats")
        self.make("gpu", [0.6], 1, backend="cuda", precision="float")
        self.make("blind", [None])
        self.make("killed", [0.4], ends=False)
        self.make("short", [0.35], **{"target-accuracy": 0.95})
        os.makedirs(self.path("runs/broken"))
        self.write("runs/broken/metrics.jsonl", "[1]\n")
        _, made = self.report("--target-accuracy", "0.7")
        assert_golden(self, "runs.txt", made["md"])

    def test_trainings_as_they_are(self):
        for name, words in (("a", ["--seed", "1"]), ("b", ["--seed", "2"]), ("c", ["--batch", "12"]),
                            ("blind", ["--limit-val", "0"])):
            self.expect(0, *SMALL, "--out", "runs/" + name, "--epochs", "2", *words)
        done = self.expect(0, "report", "runs", says=["Wrote runs/report.html"])
        report = self.json_of("runs/report.json")
        runs = {r["name"]: r for r in report["runs"]}
        self.assertEqual(set(runs), {"a", "b", "c", "blind"})
        self.assertEqual({r["outcome"] for r in runs.values()}, {"finished"})
        self.assertEqual([sorted(s["runs"]) for s in report["same_configuration"]], [["a", "b"]])
        self.assertIsNone(runs["blind"]["best"])
        lines, (summary,) = self.metrics("runs/c", "epoch"), self.metrics("runs/c", "summary")
        best = max(lines, key=lambda m: m["val_accuracy"])
        self.assertEqual(runs["c"]["best"], {
            "val_accuracy": best["val_accuracy"], "epoch": best["epoch"],
            "seconds": sum(m["seconds"] for m in lines[:best["epoch"]])})
        self.assertEqual((runs["c"]["seconds"], runs["c"]["loss"]), (summary["seconds"], lines[-1]["loss"]))
        self.assertEqual((runs["c"]["batch"], runs["c"]["threads"], runs["c"]["backend"]), (12, 1, "cpu"))
        self.assertIn("the best validation accuracy first", done.stdout)
        again = self.expect(0, "report", "runs/c", "runs", "runs/c", "--out", "o", "--json", "-")
        self.assertEqual(sorted(r["name"] for r in json.loads(again.stdout)["runs"]), ["a", "b", "blind", "c"])

    def test_runs_beside_a_sweep_have_sections_of_their_own(self):
        self.make("first", [0.5, 0.9])
        os.makedirs(self.path("s"))
        self.write(self.path("s", "cells.json"), sweep(cell(1, 25, 9.0)))
        self.expect(0, "report", "s", "runs")
        report = self.json_of("s/report.json")
        self.assertEqual((len(report["cells"]), [r["name"] for r in report["runs"]]), (1, ["first"]))
        text = self.text_of("s/report.md")
        self.assertLess(text.index("Seconds per epoch"), text.index("## Runs"))
        shutil.copytree(self.path("s"), self.path("runs/s"))
        _, made = self.report()
        self.assertIn("these folders hold sweeps, which have a report of their own: s.", made["md"])

    def test_time_that_was_lost_and_what_the_training_cost(self):
        self.make("first", [0.5, 0.9])
        budget = {"input_wait": 4.0, "forward": 2.0, "backward": 3.0, "allreduce_exposed": 0.5, "straggler_wait": 0.0,
                  "optimizer": 0.25, "other": 0.25}
        with open(self.path("runs/first/metrics.jsonl"), "w") as f:
            for line in ({**epoch(1, 0.5, 10), "budget": budget, "stolen": 0.25, "cpu_wait": 0.01},
                         {**epoch(2, 0.9, 10), "budget": budget, "stolen": 0.15, "cpu_wait": None},
                         {"type": "summary", "outcome": "finished", "seconds": 36}):
                f.write(json.dumps(line) + "\n")
        environment = self.json_of("runs/first/environment.json")
        environment.update({"cputrain": "1.2", "build": "commit abc",
                            "given": {"data": "/d/my photos", "out": "runs/x"}})
        self.write("runs/first/environment.json", environment)
        done, made = self.report("--price-per-cpu-hour", "0.5")
        self.assertIn("Starved of images: 40 % of the time was waiting for input; try a packed file", done.stdout)
        (run,) = json.loads(made["json"])["runs"]
        self.assertEqual(run["time"], {"seconds": 20, "budget": {k: 2 * v for k, v in budget.items()}, "stolen": 0.2,
                                       "cpu_wait": 0.01})
        self.assertEqual(run["cost"], 36 / 3600 * 2 * 0.5)
        self.assertIn(["first", "40.0", "20.0", "30.0", "5.0", "0.0", "2.5", "2.5", "20.0", "1.0"],
                      Page(made["html"]).rows)
        self.assertIn("20 % of a rank&#39;s CPU time went to other guests", made["html"])
        card = made["html"][made["html"].index('<div class="card"'):made["html"].index("</header>")]
        for text in ("dogcat at 64x64, data photos", '<p class="figure">0.9000</p>',
                     "<dt>cost</dt><dd>0.0100 at the price given",
                     "cputrain 1.2, commit abc", "EPYC, 2 cores; 2 ranks x 1 thread", "<dd>2026-11-25</dd>",
                     "<code>mpirun -np 2 ./cputrain --data &#39;/d/my photos&#39;</code>"):
            self.assertIn(text, card)

    def test_mistakes_are_named(self):
        self.make("first", [0.5, 0.9])
        os.makedirs(self.path("empty/within"))
        for code, words, says in ((65, ["empty"], "empty: holds no sweep (cells.json) and no training (metrics.jsonl)"),
                                  (65, ["absent"], "absent"),
                                  (2, ["runs", "--price-per-hour", "cuda:1"],
                                   "--price-per-hour cuda:1: nothing here has this backend; there is cpu"),
                                  (2, ["runs", "--reference", "x.csv"], "--reference without a sweep"),
                                  (2, ["runs", "--target-accuracy", "2"], "--target-accuracy 2")):
            with self.subTest(words=words):
                self.expect(code, "report", *words, says=[says])
        self.assertEqual(os.listdir(self.path("runs")), ["first"])


class Damage(RunsTest):
    def test_damaged_and_hostile_folders_are_rows(self):
        self.make("good", [0.5, 0.9])
        self.make("killed", [0.6], ends=False)
        with open(self.path("runs/killed/metrics.jsonl"), "a") as f:
            f.write('{"type":"step","st')
        os.makedirs(self.path("runs/killed/ckpt-000000004"))
        self.write("runs/killed/ckpt-000000004/MANIFEST", "x")
        self.write("runs/killed/environment.json", {**self.json_of("runs/killed/environment.json"),
                                                    "given": {"data": "/d/my photos", "out": "elsewhere"}})
        self.make("nan", [0.7], ends=False)
        with open(self.path("runs/nan/metrics.jsonl"), "a") as f:
            f.write('{"type":"step","step":5,"epoch":2,"images":25,"loss":null,"nan":true}\n')
        self.make(HOSTILE.replace("/", "\u2215"), [0.4], model="/m/" + HOSTILE, data=HOSTILE, started=HOSTILE,
                  optimizer=HOSTILE, augment=HOSTILE)
        os.makedirs(self.path("runs/empty"))
        os.makedirs(self.path("runs/broken"))
        with open(self.path("runs/broken/metrics.jsonl"), "wb") as f:
            f.write(b"\xff\xfe\0\n[1]\n" + b'{"type":"epoch","epoch":1e999}\n' + b"[" * 5000)
        os.makedirs(self.path("runs/pipe"))
        os.mkfifo(self.path("runs/pipe/config.json"))  # nobody writes to it
        self.write("runs/pipe/metrics.jsonl", '{"type":"summary","outcome":"finished"}\n')
        done, made = self.report()
        self.assertNotIn("\u202e", done.stdout)
        self.assertIn("Left out, since these folders hold no run: empty.", made["md"])
        self.assertEqual(done.stdout.splitlines()[-2:], [
            "killed is not finished. To go on from step 4: mpirun -np 2 cputrain --config "
            "runs/killed/config.json --out runs/killed --resume auto",
            "broken is not finished. To go on (from the beginning, as there is no checkpoint): the command that "
            "started it, with --out runs/broken --resume auto"])
        report = json.loads(made["json"])
        runs = {r["name"]: r for r in report["runs"]}
        self.assertEqual(len(runs), 6)
        self.assertEqual([runs[n]["outcome"] for n in ("good", "killed", "nan", "broken", "pipe")],
                         ["finished", "no-end", "not-a-number", "no-figures", "finished"])
        self.assertEqual(runs["killed"]["outcome_details"], "resumable from step 4")
        self.assertEqual(runs["nan"]["outcome_details"], "loss of step 5 is NaN or infinite")
        self.assertIn("line 1 is no JSON object", " ".join(runs["broken"]["troubles"]))
        self.assertIn("config.json", " ".join(runs["pipe"]["troubles"]))
        self.assertIsNone(runs["pipe"]["seconds"])
        page = Page(made["html"])
        self.assertNotIn("alert(1)<|&\n", made["html"].split("</style>")[0])
        self.assertEqual(len([r for r in page.rows if r and r[0] in runs]), 2 * 5)  # of figures, and what differs
        self.assertTrue(any("<script>alert(1)<|& " in t for t in page.texts))
        check_latex(made["tex"])
        markdown_rows(made["md"])
        self.assertEqual(len(list(csv.DictReader(io.StringIO(made["csv"], newline=""), strict=True))), 6)

    def test_two_hundred_runs(self):
        for i in range(200):
            self.make(f"run{i:03}", [0.5, 0.6 + i / 1000], seed=i)
        done, made = self.report("--target-accuracy", "0.7")
        self.assertIn("100 of 200 runs reached 0.7", done.stdout)
        self.assertIn("160 more rows are in the files.", done.stdout)
        self.assertEqual(len(json.loads(made["json"])["runs"]), 200)
        self.assertIn("Curves are those of the first 40 runs of 200.", made["html"])
        self.assertEqual(len([r for r in Page(made["html"]).rows if r[0].startswith("run") and len(r) > 3]), 201)
        self.assertLess(len(made["html"]), 2_000_000)


@needs_browser
class Browsed(RunsTest):
    COLUMN = """(head => { const cells = [...document.querySelectorAll('#runs thead th')];
        const i = cells.findIndex(c => c.textContent.startsWith(head));
        if (%s) cells[i].querySelector('button').click();
        return [cells[i].getAttribute('aria-sort'), [...document.querySelectorAll('#runs tbody tr')]
            .filter(r => !r.hidden).map(r => r.cells[0].textContent)]; })('%s')"""

    def test_tables_sort_and_filter(self):
        self.make("a10", [0.5, 0.9], 7)
        self.make("a9", [0.6, 0.8], 100)
        self.make("b", [0.6, 0.95], 20, batch=5)
        self.make("blind", [], model="other")
        self.report()
        with Browser(self.path("o")) as browser:
            page = browser.open("report.html", "document.querySelector('#runs thead button')")

            def column(head, click="true"):
                return browser.run(page, self.COLUMN % (click, head))
            self.assertEqual(column("best", "false"), [None, ["b", "a10", "a9", "blind"]])
            self.assertEqual(column("seconds to it"), ["descending", ["a9", "b", "a10", "blind"]])
            self.assertEqual(column("seconds to it"), ["ascending", ["a10", "b", "a9", "blind"]])  # none comes last
            self.assertEqual(column("run"), ["ascending", ["a9", "a10", "b", "blind"]])
            self.assertEqual(column("seconds to it", "false")[0], None)
            self.assertEqual(column("model"), ["ascending", ["a9", "a10", "b", "blind"]])
            filtered = """(text => { const field = document.querySelector('#runs .filter input'); field.value = text;
                field.dispatchEvent(new Event('input'));
                return document.querySelector('#runs .filter output').value; })('%s')"""
            self.assertEqual(browser.run(page, filtered % "DOGCAT 0.9"), "2 of 4")
            self.assertEqual(column("best", "false")[1], ["a10", "b"])
            self.assertEqual(browser.run(page, filtered % ""), "")
            # The keyboard: heads are buttons, and the window itself never scrolls sideways.
            self.assertEqual(browser.run(page, "document.querySelectorAll('#runs thead th:not(:has(button))').length"),
                             0)
            self.assertTrue(browser.run(page, "document.documentElement.scrollWidth <= window.innerWidth"))
            self.assertEqual(plots(self, browser, page), [("run-loss", "drawn"), ("run-accuracy", "drawn")])
            axes = "Chart.getChart(document.querySelector('.plot canvas')).options.scales.x.title.text"
            self.assertEqual(browser.run(page, axes), "images seen")
            browser.run(page, "document.querySelectorAll('.plot .switch button')[2].click()")
            self.assertEqual(browser.run(page, axes), "seconds of training")
            last = "Chart.getChart(document.querySelector('.plot canvas')).data.datasets[0].data.at(-1)"
            self.assertEqual(browser.run(page, last), {"x": 40, "y": 0.125})

    def test_plots_toggle_smooth_and_become_files(self):
        self.make("a", [0.5, 0.9], batch=5)
        self.make("b", [0.6, 0.95])
        self.make("c", [0.6, 0.95], data="/d/others", model="other", lr=0.2, backend="cuda", **{"image-size": 96})
        self.report("--price-per-hour", "3")
        with Browser(self.path("o")) as browser:
            page = browser.open("report.html", "document.querySelector('#runs thead button')")
            # No column is hidden in the window of a laptop, whatever differs.
            browser.call("Emulation.setDeviceMetricsOverride", page, width=1280, height=900, deviceScaleFactor=1,
                         mobile=False)
            wide = "(t => t.scrollWidth - t.clientWidth)(document.querySelector('#runs .table'))"
            self.assertEqual(browser.run(page, wide), 0)
            # Heads stand upright in a narrow window alone.
            upright = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
                done(document.querySelector('#runs table').classList.contains('upright')))))"""
            self.assertFalse(browser.run(page, upright))
            browser.call("Emulation.setDeviceMetricsOverride", page, width=390, height=844, deviceScaleFactor=1,
                         mobile=False)
            self.assertTrue(browser.run(page, upright))
            browser.call("Emulation.setDeviceMetricsOverride", page, width=1280, height=900, deviceScaleFactor=1,
                         mobile=False)
            self.assertFalse(browser.run(page, upright))
            # What is saved, instead of a download.
            browser.run(page, """window.saved = []; URL.createObjectURL = blob => (window.blob = blob, 'blob:');
                HTMLAnchorElement.prototype.click = function () { saved.push([this.download, blob.arrayBuffer().then(
                    bytes => new TextDecoder('latin1').decode(bytes))]); }""")
            press = "document.querySelector('%s').click()"
            saved = """new Promise(done => {
                const wait = () => saved.length ? done(Promise.all(saved.pop())) : setTimeout(wait, 20);
                wait(); })"""
            browser.run(page, press % ".save")
            name, png = browser.run(page, saved)
            self.assertEqual((name, png[1:4]), ("3-trainings.png", "PNG"))
            # Nothing of the scripts is seen outside, but the library.
            seen = browser.run(page, "[typeof save, typeof figures === 'object' && figures.tagName, typeof drawPlot]")
            self.assertEqual(seen, ["undefined", "SCRIPT", "undefined"])
            self.assertEqual({what for _, what in plots(self, browser, page)}, {"drawn"})
            # Networks on other data have plots of their own.
            titles = browser.run(page, "[...document.querySelectorAll('.plot h3')].map(h => h.textContent)")
            self.assertEqual(titles, ["Loss, data photos", "Loss, data others", "Accuracy of validation, data photos",
                                      "Accuracy of validation, data others"])
            # Accuracies are drawn with what they may be (Wilson's interval of 60 and 95 of 100), and the axis has it.
            accuracy = "(chart => %s)(Chart.getChart(document.querySelectorAll('.plot canvas')[2]))"
            self.assertEqual(browser.run(page, accuracy % "chart.data.datasets[0].data.map(p => p.range)"),
                             [[0.502, 0.6906], [0.88825, 0.97846]])
            self.assertTrue(browser.run(page, accuracy % "chart.data.datasets.every(s => s.band)"))
            low, high = browser.run(page, accuracy % "[chart.scales.y.min, chart.scales.y.max]")
            self.assertTrue(0 <= low <= 0.40383 and 0.97846 <= high <= 1, (low, high))  # the least is of 50
            browser.run(page, press % ".plot .files button:nth-child(2)")
            name, text = browser.run(page, saved)
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
            self.assertEqual((name, rows[0], len(rows)),
                             ("loss-data-photos.csv", ["line", "images seen", "loss (nats)"], 1 + 2 * (8 + 2)))
            self.assertIn(["a", "75", str(round(1 / 3, 5))], rows)
            self.assertIn(["b, validation", "200", "0.5"], rows)
            browser.run(page, press % ".plot .files button")
            name, png = browser.run(page, saved)
            self.assertEqual((name, png[1:4]), ("loss-data-photos.png", "PNG"))
            # Keys hide lines; smoothing is TensorBoard's running mean without the bias of its start.
            chart = "Chart.getChart(document.querySelector('.plot canvas'))"
            shown = chart + ".data.datasets.map((_, i) => " + chart + ".isDatasetVisible(i))"
            self.assertEqual(browser.run(page, shown), [True, False, True] * 2)
            browser.run(page, press % ".plot .keys button")
            self.assertEqual(browser.run(page, shown), [False] * 3 + [True, False, True])
            browser.run(page, """(slider => { slider.value = 0.5; slider.dispatchEvent(new Event('input')); })
                (document.querySelector('.plot input[type=range]'))""")
            self.assertEqual(browser.run(page, shown), [False] * 3 + [True, True, True])
            second = browser.run(page, chart + ".data.datasets[3].data[1].y")
            self.assertAlmostEqual(second, (0.5 * 0.5 * 1 + 0.5 * 0.5) / 0.75)


if __name__ == "__main__":
    unittest.main()
