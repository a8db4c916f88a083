"""The parts of a day with a GPU: time limits, processes, what tools say, tables."""
import os
import runpy
import time
import unittest
from unittest import mock

from gpu_day_folder import Folder, ROOT
import benchmark_steps
import context
import day as days
import kernel_steps
import libraries
import order
import predictions
import processes
import results
import summary
import training_steps


DAY = runpy.run_path(os.path.join(ROOT, "scripts", "gpu", "day", "run"))


class Commands(Folder):
    def run_for(self, seconds, *words):
        return self.commands.run(words, seconds, dict(os.environ), self.folder)

    def test_what_ends_is_logged(self):
        done = self.run_for(60, "bash", "-c", f"echo of {self.path('pack')}; echo aside >&2; exit 3")
        self.assertEqual((done.code, done.text, done.cut), (3, "of PACK\naside\n", False))
        self.assertIn("exit 3", self.log())
        self.assertNotIn(self.folder, self.log().splitlines()[0], self.log())

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        script = ("trap '' TERM; setsid sleep 1000 & (setsid bash -c 'sleep 1000; true' &) ; echo begun; "
                  "sleep 1000; true")
        done = self.run_for(5, "bash", "-c", script)
        self.assertTrue(done.cut)
        self.assertEqual(done.text, "begun\n")
        self.assertEqual(list(processes.marked(self.commands.token)), [])

    def test_what_outlives_its_parent_is_ended(self):
        done = self.run_for(60, "bash", "-c", "setsid sleep 1000 & echo gone")
        self.assertEqual((done.code, done.cut), (0, False))
        self.assertEqual(list(processes.marked(self.commands.token)), [])

    def test_what_cannot_be_started_is_told(self):
        done = self.run_for(60, self.path("none"))
        self.assertEqual(done.code, 127)
        self.assertIn("No such file", done.text)


class Steps(Folder):
    def outcomes(self, steps, seconds=100, only=None):
        day = self.day(seconds)
        with mock.patch.object(order, "steps", lambda: [order.Step(name, run, limits, limits, order.ESTIMATED)
                                                             for name, limits, run in steps]), \
                mock.patch.object(days, "say"):
            days.make_steps(day, day.results, only)
        return {step.name: (step.outcome, step.text) for step in day.results.steps}

    def test_none_stops_the_rest(self):
        def hangs(day):
            context.expect(day.run(["sleep", "1000"]), "it")

        def fails(day):
            context.expect(day.run(["bash", "-c", "echo why; exit 4"]), "it")

        def skips(day):
            context.expect(day.run(["bash", "-c", "echo because; exit 77"]), "it")

        def breaks(day):
            return day.nothing

        found = self.outcomes([("hangs", (0.25, 0.25), hangs), ("fails", (9, 9), fails), ("skips", (9, 9), skips),
                               ("breaks", (9, 9), breaks), ("works", (9, 9), lambda day: "fine")])
        self.assertEqual(found["hangs"][0], "failed")
        self.assertIn("it still ran", found["hangs"][1])
        self.assertEqual(found["fails"], ("failed", "it ended with 4: why"))
        self.assertEqual(found["skips"], ("skipped", "because"))
        self.assertIn("AttributeError", found["breaks"][1])
        self.assertEqual(found["works"], ("ok", "fine"))

    def test_the_days_end_cuts_the_rest(self):
        def hangs(day):
            context.expect(day.run(["sleep", "1000"]), "it")

        found = self.outcomes([("hangs", (1000, 1000), hangs), ("late", (9, 9), lambda day: "fine")],
                              seconds=days.AT_THE_END + days.LEAST_SECONDS + 3)
        self.assertEqual(found["hangs"][0], "not run")
        self.assertIn("out of time: it was cut", found["hangs"][1])
        self.assertEqual(found["late"], ("not run", "out of time"))

    def test_what_is_found_wrong_late_has_failed(self):
        def finds(day):
            time.sleep(max(0, day.left_of_step()))
            raise results.Failed("it is wrong")

        found = self.outcomes([("finds", (1000, 1000), finds)], seconds=days.AT_THE_END + days.LEAST_SECONDS + 3)
        self.assertEqual(found["finds"], ("failed", "it is wrong"))

    def test_some_steps_alone(self):
        steps = [(name, (9, 9), lambda day: "fine") for name in ("bench step exact", "PyTorch", "ncu")]
        found = self.outcomes(steps, only=["pytorch", "step"])
        self.assertEqual([outcome for outcome, _ in found.values()], ["ok", "ok", "skipped"])
        self.assertEqual(found["ncu"][1], "not asked for")

    def test_a_rehearsal_leaves_out_what_has_no_seconds_in_it(self):
        step = order.Step("long", lambda day: "fine", (9, 0), (9, 9), order.ESTIMATED)
        for quick, outcome in ((True, ("skipped", "a rehearsal leaves it out")), (False, ("ok", "fine"))):
            result = days.make_step(self.day(quick=quick), step)
            self.assertEqual((result.outcome, result.text), outcome)

    def test_the_plan_fits(self):
        steps = list(order.steps())
        names = [step.name for step in steps]
        self.assertEqual(len(names), len(set(names)))
        untimed = steps[:names.index("PyTorch has compiled")]
        self.assertLessEqual(sum(step.seconds[False] for step in untimed), DAY["WHOLE"] - days.AT_THE_END,
                             "however slow they are, what asks for right results is made")
        for quick, seconds in ((False, DAY["WHOLE"]), (True, DAY["QUICK"])):
            self.assertLessEqual(order.expected_seconds(quick), seconds - days.AT_THE_END,
                                 "all steps are made where each takes what it should")
            for step in steps:
                self.assertLess(step.expected[quick], step.seconds[quick], step.name)


class Programs(Folder):
    def test_only_some_refusals_of_a_benchmark_skip_it(self):
        day = self.day()
        for words, says, error in (
                (["--precision", "exact"], "--precision exact needs --backend cpu", results.Failed),
                (["--precision", "exact"], "the device is emulated", results.Skipped)):
            done = processes.Done(2, f"cputrain: {says}\n", 1.0, False)
            with mock.patch.object(day, "cputrain", lambda *_, done=done, **__: done), self.assertRaises(error):
                benchmark_steps.bench(day, "step", "step", *words)

    def device_tests(self, *scripts):
        day = self.day(emulated=False)
        os.mkdir(self.path("pack", "device"))
        for n, script in enumerate((*scripts, "exit 3")):
            name = f"device_{n}" if n < len(scripts) else "sanitizer_control"
            self.tool(self.path("pack", "device", name), f"#!/bin/sh\n{script}\n")
        return kernel_steps.run_device_tests(day)

    def test_device_tests_have_to_test_something(self):
        for script, why in (("echo '[  PASSED  ] 0 tests.'", "tested nothing"), ("true", "tested nothing"),
                            ("echo 'skipped: none'; exit 77", "found no GPU, skipped: none")):
            with self.subTest(script=script):
                self.setUp()
                with self.assertRaisesRegex(results.Failed, f"^device_1: {why}"):
                    self.device_tests("echo '[  PASSED  ] 3 tests.'", script)
        self.setUp()
        self.assertEqual(self.device_tests("echo '[  PASSED  ] 3 tests.'"), "device_0 3 passed")

    def test_test_programs(self):
        text = ("[  FAILED  ] Gemm.odd (3 ms)\n[  PASSED  ] 129 tests.\n[  FAILED  ] 2 tests, listed below:\n"
                "[  FAILED  ] Gemm.odd\n[  FAILED  ] All/Pools.max/stride_2, where GetParam() = 2\n")
        facts = kernel_steps.facts_of_tests(processes.Done(1, text, 2.0, False))
        self.assertEqual((facts["passed"], facts["failed"]), (129, ["All/Pools.max/stride_2", "Gemm.odd"]))
        self.assertIn("ended with -11", kernel_steps.facts_of_tests(processes.Done(-11, "", 2.0, False))["why"])
        self.assertEqual(kernel_steps.facts_of_tests(processes.Done(0, "[  PASSED  ] 3 tests.\n", 2, False))["why"], "")

    def test_losses_beside_others(self):
        self.assertIn("2 losses within 5.0e-05", training_steps.near([1.0, 2.0001], [1.0, 2.0], "the CPU's"))
        for wrong in ([1.0, 2.1], [1.0, float("nan")]):
            with self.assertRaises(results.Failed):
                training_steps.near(wrong, [1.0, 2.0], "the CPU's")
        with self.assertRaisesRegex(results.Failed, "1 steps"):
            training_steps.near([1.0], [1.0, 2.0], "the CPU's")


class Selftest(Folder):
    FIRST = {"passed": 2, "failed": 0, "cases": [{"name": "a", "error": 1e-7, "limit": 1e-5, "hash": "1",
                                                  "passed": True},
                                                 {"name": "b", "error": 1e-6, "limit": 1e-5, "hash": "2",
                                                  "passed": True}]}

    def changed(self, **of_b):
        return {**self.FIRST, "cases": [self.FIRST["cases"][0], {**self.FIRST["cases"][1], **of_b}]}

    def step(self, day, run, result):
        with mock.patch.object(kernel_steps, "selftest", lambda day, name: result):
            return run(day)

    def test_a_wrong_case_is_named(self):
        wrong = {**self.changed(error=1.0, passed=False), "failed": 1}
        with self.assertRaisesRegex(results.Failed, "1 of 2 cases: b"):
            self.step(self.day(), kernel_steps.run_selftest, wrong)

    def test_other_bits_are_named(self):
        day = self.day()
        self.step(day, kernel_steps.run_selftest, self.FIRST)
        with self.assertRaisesRegex(results.Failed, "1 of 2 cases: b"):
            self.step(day, kernel_steps.repeat_selftest, self.changed(hash="3"))

    def test_beside_the_emulated_device(self):
        day = self.day()
        self.step(day, kernel_steps.run_selftest, self.changed(hash="3", error=9e-6))
        with self.assertRaises(results.Skipped):
            kernel_steps.compare_with_emulated(day)
        with mock.patch.object(day.bundle, "read_json", lambda *_: self.FIRST):
            self.assertEqual(kernel_steps.compare_with_emulated(day),
                             "1 of 2 cases have the same bits, errors over 4 times as large in 1: b")

    def test_a_case_that_is_missing_beside_the_emulated_device_fails(self):
        day = self.day()
        self.step(day, kernel_steps.run_selftest, {**self.FIRST, "passed": 1, "cases": self.FIRST["cases"][:1]})
        with mock.patch.object(day.bundle, "read_json", lambda *_: self.FIRST), \
                self.assertRaisesRegex(results.Failed, "1 of the emulated device's 2 cases are missing here: b"):
            kernel_steps.compare_with_emulated(day)

    def test_a_case_without_an_error_beside_the_emulated_device_fails(self):
        day = self.day()
        day.results.write_json("selftest.json", self.changed(error=None, passed=False))
        with mock.patch.object(day.bundle, "read_json", lambda *_: self.FIRST), \
                self.assertRaisesRegex(results.Failed, "1 of 2 cases have no error, only NaN: b"):
            kernel_steps.compare_with_emulated(day)


class Tables(Folder):
    PREDICTED = {"predictions": [{"gpu": "H100", "model": "dogcat", "image": [256, 256], "precision": "exact",
                                  "batch": 128, "images_per_second": 5100.0,
                                  "layers": [{"name": "conv2d", "direction": "data", "seconds": 128e-6}]}]}

    def test_predictions_of_a_device(self):
        rate = predictions.images_per_second
        self.assertEqual(rate(self.PREDICTED, "NVIDIA H100 80GB HBM3", "exact", 128), 5100)
        self.assertIsNone(rate(self.PREDICTED, "NVIDIA H200", "exact", 128))
        self.assertIsNone(rate(self.PREDICTED, "NVIDIA H100", "tf32", 128))
        self.assertIsNone(rate(None, "NVIDIA H100", "exact", 128))
        self.assertIsNone(rate(self.PREDICTED, "NVIDIA H100", "exact", 128, ("dogcat", 128)))
        self.assertIsNone(rate(self.PREDICTED, "NVIDIA H100", "exact", 128, ("resnet50v2", 256)))
        us = predictions.microseconds(self.PREDICTED, "NVIDIA H100", "exact", 128, "conv2d", "backward_data")
        self.assertAlmostEqual(us, 1)

    def filled(self):
        found = self.day().results
        found.add(results.Result("curve", "ok", 1.5, "fine"))
        found.add(results.Result("selftest", "failed", 2.5, "1 of 2 cases: gemm"))
        found.figure("dogcat exact, batch 128", "images/s", 2550.0, 5100.0)
        found.figure("dogcat tf32, batch 128", "images/s", 9000.0)
        return found

    def test_the_page_names_what_failed_last(self):
        page = summary.text(self.filled())
        self.assertTrue(page.endswith("FAILED: selftest\n"), page)
        self.assertRegex(page, r"dogcat exact, batch 128 +5,100 +2,550 +0.5 ")
        self.assertRegex(page, r"dogcat tf32, batch 128 +- +9,000 +- ")

    def test_a_whole_day_fits_on_the_page_but_for_single_layers(self):
        found = self.day().results
        for step in order.steps():
            found.add(results.Result(step.name, "ok", 1.0, "said " * 30))
        family = {"kernel": "gemm BackwardWeights 128x128", "microseconds": 1234.5, "waits": {
            "math_pipe_throttle": 0.3, "long_scoreboard": 0.3, "short_scoreboard": 0.2}, "rates": {}}
        for name, families in (("dogcat bf16", 11), ("dogcat tf32", 11), ("resnet50v2 bf16", 14)):
            found.facts.setdefault("ncu", {})[name] = {"families": [family] * families}
        for n in range(60):
            found.figure(f"layer {n}", "us/image", 1.0)
        for n in range(45):  # steps of three precisions, of a ResNet, of PyTorch's modes, of CPUs
            found.figure(f"PyTorch resnet50v2 224x224 compiled-bf16, batch {n}", "images/s", 1e4)
        page = summary.text(found)
        self.assertIn("compiled-bf16, batch 44 ", page)
        self.assertEqual(page.count("gemm BackwardWeights 128x128"), 36)
        self.assertIn("45 steps: 45 ok".replace("45", str(len(found.steps))), page)
        self.assertLess(len(page), summary.MOST_CHARACTERS + 100)


class Libraries(unittest.TestCase):
    def test_which_travel(self):
        for name in ("libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6", "libpthread.so.0"):
            self.assertTrue(libraries.OF_THE_SYSTEM.fullmatch(name), name)
        for name in ("libstdc++.so.6", "libgomp.so.1", "libgcc_s.so.1"):
            self.assertTrue(libraries.SPARE.fullmatch(name), name)
        for name in ("libdnnl.so.2", "libmpi.so.40", "libcsv.so.3", "libmd.so.0"):
            self.assertFalse(libraries.OF_THE_SYSTEM.fullmatch(name) or libraries.SPARE.fullmatch(name), name)
        for name in ("mca_btl_ofi.so", "mca_pml_ucx.so", "mca_spml_ucx.so", "mca_plm_slurm.so", "mca_atomic_basic.so"):
            self.assertTrue(libraries.NOT_PACKED.fullmatch(name), name)
        for name in ("mca_btl_vader.so", "mca_plm_isolated.so", "mca_pmix_ext3x.so", "mca_coll_basic.so"):
            self.assertFalse(libraries.NOT_PACKED.fullmatch(name), name)

    def test_open_mpi_5_has_other_launchers_and_is_left_out(self):
        with mock.patch.object(libraries.shutil, "which", lambda name: None if name == "orted" else "/usr/bin/" + name):
            self.assertEqual(libraries.open_mpi(), {})


if __name__ == "__main__":
    unittest.main()
