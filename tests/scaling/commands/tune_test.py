"""`tune`: what it measures and suggests, one curve at any number of ranks, its files, and what it refuses."""
import json
import math
import os
import re
import signal
import subprocess
import unittest

from drawn import Browser, needs_browser, plots
from page import Page
from program import PROGRAM, needs_mpi
from tiny import TINY, TinyTest

ALONE = ["--threads", "1"]
MODEL = ["--model", "tiny.json", *ALONE]
RATES = ["--min-lr", "1e-3", "--max-lr", "10", "--lr-steps", "24"]


class Tune(TinyTest):
    def setUp(self):
        super().setUp()
        self.make("d", cat=40, dog=40)

    def tune(self, *words, **options):
        return json.loads(self.expect(0, "tune", *MODEL, "--json", "-", *words, **options).stdout)

    def rates(self, *words, **options):
        return self.tune("--data", "d", "--find", "rate", *RATES, *words, **options)["rate"]

    def test_files_hold_what_was_measured_and_nothing_else_changes(self):
        os.makedirs(self.path("o"))
        self.write("o/mine", "mine")
        before = sorted(os.listdir(self.folder))
        done = self.expect(0, "tune", *MODEL, "--data", "d", "--most-batch", "32", "--repeat", "2", *RATES, "--out", "o",
                           says=["| micro-batch |", "o/tune.html"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(sorted(os.listdir(self.path("o"))), ["mine", "tune.html", "tune.json"])
        for line in ("micro-batch 4: ", "micro-batch 8: ", "batch 16: "):
            self.assertIn(line, done.stderr)
        found = self.json_of("o/tune.json")
        self.assertEqual([found[k] for k in ("model", "image_size", "ranks", "threads", "data", "optimizer")],
                         ["tiny", 16, 1, 1, "d", "sgd"])
        micro, batch = found["ladders"]
        # The recipe's batch of 8 is the most that a pass can have.
        self.assertEqual([r["value"] for r in micro["rungs"]], [4, 8])
        # The recipe's batch of 8 is no rung: the best is compared with it in the end.
        self.assertEqual([r["value"] for r in batch["rungs"]], [16, 32, 8])
        self.assertEqual((micro["usual"], batch["usual"]), (8, 8))
        for ladder in (micro, batch):
            self.assertIn(ladder["best"], [r["value"] for r in ladder["rungs"]])
            speeds = {r["value"]: r["images_per_second"] for r in ladder["rungs"]}
            for rung in ladder["rungs"]:
                in_rounds, gain = rung["in_rounds"], rung["gain"]
                self.assertTrue(0 < in_rounds["min"] <= in_rounds["median"] <= in_rounds["max"])
                # One figure for a speed: with the gain beside it, and in the line that tells it.
                self.assertAlmostEqual(rung["images_per_second"], speeds[gain["over"]] * (1 + gain["median"])
                                       if gain else in_rounds["median"])
                self.check_told(done, ladder["flag"], rung)
                self.assertGreater(rung["memory_planned"]["rank_bytes"], 0)
                self.assertGreater(rung["memory_measured"]["rank_bytes"], 0)
            first, second = ladder["rungs"][:2]
            self.assertIsNone(first["gain"])
            self.assertEqual(second["gain"]["over"], first["value"])
            low, high = second["gain"]["interval"]
            self.assertTrue(low <= second["gain"]["median"] <= high)
            self.assertEqual(ladder["best"], second["value"] if second["gain"]["pays"] else first["value"])
            over_usual = ladder["gain_over_usual"]
            quicker = ladder["best"] != ladder["usual"] and over_usual["pays"] and over_usual["confidence"] >= 0.8
            self.assertEqual(ladder["advised"], ladder["best"] if quicker else None)
        flags = dict(zip(*[iter(found["suggestion"]["flags"])] * 2))
        for ladder in (micro, batch):
            self.assertEqual(flags.get("--" + ladder["flag"]), ladder["advised"] and str(ladder["advised"]))
        self.assertEqual(found["rate"]["batch"], batch["advised"] or 8)  # the rates are of it
        self.check_page(found)

    def check_told(self, done, flag, rung):
        told = re.search(rf"^\[\d of up to \d\] {flag} {rung['value']}: ([\d.,]+) images/s", done.stderr, re.M)
        row = re.search(rf"^\| {rung['value']} +\| +([\d.,]+) \|", done.stdout[done.stdout.index(f"| {flag} "):], re.M)
        self.assertEqual(told[1], row[1])
        self.assertAlmostEqual(float(told[1].replace(",", "")) / rung["images_per_second"], 1, delta=1e-3)

    def check_page(self, found):
        text = self.text_of("o/tune.html")
        page = Page(text)
        rows = {row[0]: row[1:] for row in page.rows if row}
        for step in found["rate"]["curve"]:
            self.assertEqual(float(rows[f"{step['rate']:.3g}"][0]), float(f"{step['loss']:.4g}"))
        for line in found["suggestion"]["lines"]:
            self.assertIn(line, page.texts)
        if "data-plot" in text:
            figures = json.loads(page.scripts[0])
            self.assertEqual(figures["tune"], found)

    @needs_browser
    def test_the_page_draws_in_a_browser(self):
        self.tune("--data", "d", "--most-batch", "32", "--repeat", "1", *RATES, "--out", "o")
        with Browser(self.path("o")) as browser:
            page = browser.open("tune.html", "document.querySelector('#rate')")
            names = ["tune-micro-batch", "tune-batch", "tune-rate"]
            self.assertEqual(plots(self, browser, page), [(name, "drawn") for name in names])
            # All are drawn again for dark colours; one that cannot be leaves the others alone.
            browser.run(page, """Chart = new Proxy(Chart, { construct(made, parts) {
                if (parts[0].closest('[data-plot]').dataset.plot === 'tune-batch') throw Error('planted');
                return Reflect.construct(made, parts); } })""")
            browser.darken(page)
            self.assertEqual(plots(self, browser, page),
                             [(names[0], "drawn"), (names[1], "This plot could not be drawn (planted)."),
                              (names[2], "drawn")])

    def test_rates_grow_by_one_factor_and_a_curve_is_that_of_training(self):
        curve = self.rates("--batch", "8")["curve"]
        factors = [b["rate"] / a["rate"] for a, b in zip(curve, curve[1:])]
        self.assertAlmostEqual(curve[0]["rate"], 1e-3)
        for factor in factors:
            self.assertAlmostEqual(factor, 1e4 ** (1 / 23), places=6)
        # With one rate it is a training of so many steps.
        words = ["--limit-train", "64", "--batch", "8"]
        same = self.tune("--data", "d", "--find", "rate", *words, "--min-lr", "0.05", "--max-lr", "0.0500000001",
                         "--lr-steps", "20")["rate"]
        self.tiny(0, "run", "d", *words, "--lr", "0.05", "--steps", "20", "--log-every", "1", "--schedule", "constant")
        trained = [s["loss"] for s in self.metrics("run", "step")]
        self.assertEqual(len(trained), 20)  # more than an epoch
        for step, loss in zip(same["curve"], trained):
            self.assertAlmostEqual(step["loss"], loss, places=6)

    @needs_mpi
    def test_ranks_see_the_same_curve(self):
        def losses(*words, **options):
            return [s["loss"] for s in self.rates("--batch", "10", *words, **options)["curve"]]
        one, two = losses(), losses(ranks=2)
        self.assertEqual(len(one), len(two))
        for a, b in zip(one, two):
            self.assertAlmostEqual(a, b, delta=1e-4 * abs(a))
        self.assertEqual(losses("--reproducible"), losses("--reproducible", ranks=2))
        found = self.tune("--find", "speed", "--most-batch", "32", "--repeat", "1", ranks=2)
        self.assertEqual((found["ranks"], found["rate"]), (2, None))
        self.assertEqual([r["value"] for r in found["ladders"][0]["rungs"]], [4])  # a rank's share of 8
        memory = found["ladders"][0]["rungs"][0]["memory_planned"]
        self.assertGreater(memory["node_bytes"], memory["rank_bytes"])

    def test_a_loss_that_diverges_ends_the_test(self):
        rate = self.tune("--data", "d", "--find", "rate", "--batch", "8", "--min-lr", "1e-3", "--max-lr", "1e6",
                         "--lr-steps", "80")["rate"]
        self.assertIn(rate["end"], ("diverged", "not finite"))
        self.assertLess(len(rate["curve"]), 80)
        self.assertTrue(all(math.isfinite(s["loss"]) for s in rate["curve"]))
        self.assertLess(rate["diverged_at"], 1e6)

    def test_what_is_given_stays(self):
        found = self.tune("--data", "d", "--find", "speed", "--batch", "12", "--micro-batch", "3")
        self.assertEqual((found["ladders"], found["suggestion"]["flags"]), ([], []))
        self.assertEqual(found["suggestion"]["lines"],
                         ["Micro-batch: 3, as it was given.", "Batch: 12, as it was given."])
        layers = TINY["layers"]
        self.write("normal.json", {**TINY, "layers": [layers[0], {"type": "batch_norm"}, *layers[1:]]})
        done = self.expect(0, "tune", "--model", "normal.json", *ALONE, "--batch", "12", "--json", "-")
        found = json.loads(done.stdout)
        self.assertIn("batch normalization", found["suggestion"]["lines"][0])
        self.assertIn("without --data", found["suggestion"]["lines"][2])

    def test_how_long_it_takes_is_said_before_the_first_size(self):
        done = self.expect(0, "tune", *MODEL, "--data", "d", "--most-batch", "32", "--repeat", "1", *RATES)
        told = done.stderr.index("Tuning: up to 2 sizes of --micro-batch, then up to 3 sizes of --batch, then up to 24 "
                                 "steps with growing learning rates: about ")
        self.assertLess(told, done.stderr.index("[1 of up to 2] micro-batch 4: "))
        self.assertRegex(done.stderr, r"\[1 of up to 3\] batch 16: .*\n\[2 of up to 3\] batch 32: .* - about \d+ s "
                         r"left\n\[3 of up to 3\] batch 8: ")
        self.assertRegex(done.stderr, r"Rate test: up to 24 steps, at most about \d+ s by the first ones")

    def test_sizes_are_left_out_where_they_matter_in_the_first_epoch_alone(self):
        words = ["tune", *MODEL, "--data", "d", "--freeze", "all-but-head", "--lr-steps", "12", "--json", "-"]
        quick = ["--repeat", "1", "--most-batch", "32"]
        alone = "matters in its first epoch alone; --find both tries sizes, too."
        done = self.expect(0, *words, says=[alone])
        self.assertLess(done.stderr.index("Micro-batch and batch: not tried."), done.stderr.index("Found "))
        found = json.loads(done.stdout)
        self.assertEqual((found["ladders"], found["kept_features"]), ([], 1))
        self.assertIn(alone, found["suggestion"]["lines"][0])
        self.assertEqual(len(found["rate"]["curve"]), 12)
        self.assertRegex(done.stderr, r"Rate test: up to 12 steps, about \d+ s by the first ones")
        done = self.expect(0, *words, *quick, "--find", "both", says=["so they count in its first epoch alone."])
        found = json.loads(done.stdout)
        self.assertEqual([ladder["flag"] for ladder in found["ladders"]], ["micro-batch", "batch"])
        self.assertIn("in its first epoch alone.", found["suggestion"]["lines"][0])
        # Flags of the sizes ask for them, too.
        self.assertEqual(len(json.loads(self.expect(0, *words, *quick).stdout)["ladders"]), 2)
        # Colours draw too many views of an image to keep what becomes of it.
        done = self.expect(0, *words, *quick, "--augment", "brightness:0.2")
        found = json.loads(done.stdout)
        self.assertEqual((len(found["ladders"]), found["kept_features"]), (2, None))
        self.assertNotIn("first epoch", done.stderr + found["suggestion"]["lines"][0])

    def test_steps_of_frozen_layers_compute_them_all_each_time(self):
        # Few images are met in each step again: what is kept of them would make steps quicker and quicker.
        deep = [{"type": "convolution", "filters": 48, "kernel": 3, "name": f"deep{i}"} for i in range(6)]
        self.write("deep.json", {**TINY, "layers": deep + TINY["layers"][2:]})
        words = ["--model", "deep.json", *ALONE, "--data", "d", "--freeze", "all-but-head", "--batch", "16",
                 "--image-size", "32", "--json", "-"]
        step = json.loads(self.expect(0, "bench", "step", *words, "--repeat", "9").stdout)
        # The quickest steps, which other work on the machine did not meet.
        whole, kept = step["images_per_second"]["max"], step["features_kept"]["max"]
        self.assertGreater(kept, 8 * whole)
        found = json.loads(self.expect(0, "tune", *words, "--find", "speed", "--repeat", "2").stdout)
        for rung in found["ladders"][0]["rungs"]:
            self.assertLess(rung["in_rounds"]["median"], kept / 8)

    @unittest.skipUnless(hasattr(os, "sched_setaffinity"), "needs Linux")
    def test_a_busy_machine_is_told(self):
        cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cpus)})  # which the program inherits: two threads on one CPU
        try:
            done = self.expect(0, "tune", "--model", "tiny.json", "--threads", "2", "--batch", "8", "--find", "speed",
                               "--repeat", "2", "--json", "-")
        finally:
            os.sched_setaffinity(0, cpus)
        found = json.loads(done.stdout)
        waits = [r["cpu_wait"] for r in found["ladders"][0]["rungs"]]
        if None in waits:
            self.skipTest("this system does not count how long threads wait")
        self.assertGreater(max(waits), 0.1)
        self.assertRegex(done.stderr, r"micro-batch \d: .*; threads waited \d+ % of their time for a CPU")
        self.assertTrue(found["suggestion"]["lines"][1].startswith("Figures of --micro-batch were disturbed, most at "))

    def test_one_that_is_ended_leaves_nothing(self):
        words = [PROGRAM, "tune", *MODEL, "--find", "speed", "--repeat", "1000", "--out", "a/new", "--json", "new.json"]
        before = sorted(os.listdir(self.folder))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True) as tune:
                    while "Tuning" not in tune.stderr.readline():
                        self.assertIsNone(tune.poll())
                    tune.send_signal(number)
                    tune.communicate()
                self.assertNotEqual(tune.returncode, 0)
                self.assertEqual(sorted(os.listdir(self.folder)), before)
        with open(self.path("file"), "w"):
            pass
        self.expect(74, "tune", *MODEL, "--find", "speed", "--out", "file/o", says=["file/o"])

    def test_two_rates_are_said_to_keep_their_ratio(self):
        words = ["tune", *MODEL, "--data", "d", "--find", "rate", "--batch", "8", "--min-lr", "1e-9", "--max-lr",
                 "2e-9", "--lr-steps", "8"]
        said = "those of the layers before are 0.1 times as much in every step"
        done = self.expect(0, *words, "--lr", "0.05", "--backbone-lr", "0.005", says=[said])
        self.assertIn("The rate of the backbone kept its ratio to --lr, 0.1.", done.stdout)  # and no rate is suggested
        self.assertNotIn("layers before", self.expect(0, *words).stderr)

    def test_the_rate_is_that_of_the_flag(self):
        words = ["--batch", "8", "--lr-scale", "linear", "--base-batch", "4"]
        rate = self.rates(*words)
        self.assertEqual(rate["lr_scale"], 2)
        if rate["advice"]:
            self.assertAlmostEqual(rate["advice"]["lr"], rate["advice"]["rate"] / 2)

    def test_flags_without_effect_are_named(self):
        done = self.expect(0, "tune", *MODEL, "--data", "d", "--find", "rate", "--batch", "8", "--lr-steps", "2",
                           "--schedule", "plateau", "--repeat", "2")
        for flag in ("--schedule plateau", "--repeat 2"):
            self.assertRegex(done.stderr, re.escape(flag) + " changes nothing")

    def test_the_words_of_a_training_are_taken(self):
        words = {"--epochs": "20", "--steps": "7", "--eval-every": "2", "--early-stopping": "3", "--save-best": None,
                 "--checkpoint-every": "0", "--resume": "auto", "--on-nan": "skip", "--log-every": "1",
                 "--log-format": "mlperf", "--overwrite": None, "--profile": None, "--decode": "first"}
        given = [w for pair in words.items() for w in pair if w]
        found = self.expect(0, "tune", *MODEL, "--data", "d", "--find", "rate", "--batch", "8", "--lr-steps", "2",
                            "--verbose", "0", *given)
        said = {line.split()[1] for line in found.stderr.splitlines() if "changes nothing in tune" in line}
        self.assertEqual(said, set(words))
        self.assertEqual(len(found.stderr.splitlines()), len(words), found.stderr)

    def test_what_cannot_be_tuned_ends_with_one_message(self):
        for code, words, says in [(2, ["--find", "rate"], "--find rate needs --data"),
                                  (2, ["--data", "d", "--min-lr", "1", "--max-lr", "0.1"], "1 is not below 0.1"),
                                  (2, ["--data", "d", "--lr", "0"], "--lr 0: "),
                                  (2, ["--find", "all"], "--find all"), (2, ["--lr-steps", "1"], "--lr-steps 1"),
                                  (2, ["--most-batch", "0"], "--most-batch 0"),
                                  (2, ["--min-lr", "0"], "--min-lr 0"),
                                  (65, ["--data", "nowhere"], "nowhere"),
                                  (74, ["--data", "d", "--out", "tiny.json/o"], "tiny.json")]:
            with self.subTest(words=words):
                done = self.expect(code, "tune", *MODEL, *words, says=[says])
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
