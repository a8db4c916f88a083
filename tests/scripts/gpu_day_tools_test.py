"""What a day makes of compute-sanitizer, ncu and PyTorch: commands, what they say, and versions that refuse."""
import os
import time
import unittest
from unittest import mock

from gpu_day_folder import Folder, STAND_INS
import kernel_waits
import processes
import profile_steps
import pytorch_steps
import results
import sanitizer_steps
import usage


class Usages(Folder):
    TEXT = """2026/12/02 10:00:00.500, 0, 40, 1000, 300.5
2026/12/02 10:00:00.500, 1, [N/A], 10, [N/A]
2026/12/02 10:00:02.500, 0, 80, 3000, 500.5
a warning
2026/12/02 10:00:04.500, 0, 0, 3000, 70
2026/12/02 10:00:06.5"""

    def test_samples_are_whole_lines(self):
        found = usage.samples_of(self.TEXT)
        self.assertEqual([sample[1:] for sample in found], [(0, 40, 1000, 300.5), (1, None, 10, None),
                                                            (0, 80, 3000, 500.5), (0, 0, 3000, 70)])
        self.assertEqual([sample[0] - found[0][0] for sample in found], [0, 0, 2, 4])

    def test_a_step_has_those_of_its_time(self):
        first = usage.samples_of(self.TEXT)[0][0]
        seen = usage.Usage(self.day())
        self.assertIsNone(seen.sampling, "the device is emulated")
        seen.sampling = mock.Mock(**{"end.return_value.text": self.TEXT})
        seen.steps = [("a", first - 1, first + 3, 1.5), ("b", first + 3, first + 9, 0.5),
                      ("c", first + 9, first + 9, 0)]
        found = seen.end()
        a, b, c = found["steps"]
        self.assertEqual((a["step"], a["seconds"], a["cpus"]), ("a", 4, 1.5))
        self.assertEqual(a["gpus"], [{"gpu": 0, "percent": 60, "mib": 3000, "watts": 400.5},
                                     {"gpu": 1, "percent": None, "mib": 10, "watts": None}])
        self.assertEqual(b["gpus"][0], {"gpu": 0, "percent": 0, "mib": 3000, "watts": 70})
        self.assertEqual(c["gpus"][0], {"gpu": 0, "percent": None, "mib": None, "watts": None})
        self.assertEqual(found["samples"], ["1 0 40 1000 300.5", "1 1 - 10 -", "3 0 80 3000 500.5", "5 0 0 3000 70"])

    def test_work_of_cpus_is_seen(self):
        seen = usage.Usage(self.day())
        with seen.of_step("works"):
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                pass
        self.assertGreater(seen.end()["steps"][0]["cpus"], 0)


class Sanitizers(Folder):
    def test_summaries_of_compute_sanitizer(self):
        for text, wrong in (("ERROR SUMMARY: 0 errors", False), ("ERROR SUMMARY: 12 errors", True),
                            ("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", False),
                            ("RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)", True),
                            ("RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)", True)):
            self.assertEqual(sanitizer_steps.errors_of(text), wrong, text)

    def tool_day(self, emulated, **environment):
        day = self.day(emulated=emulated)
        day.given_tools = STAND_INS
        day.environment.update(environment)
        return day

    def look(self, day, tool, training=lambda day, *_: ["true"]):
        with mock.patch.object(sanitizer_steps, "training", training):
            return sanitizer_steps.sanitizer(tool)(day)

    def test_what_a_sanitizer_finds_fails_its_step(self):
        day = self.tool_day(True, STAND_IN_FINDS="memcheck")
        self.assertIn("small in bf16: 0 errors", self.look(day, "initcheck"))
        with self.assertRaisesRegex(results.Failed, "large in bf16: .*1 error: Invalid __global__ read of size 4"):
            self.look(day, "memcheck")

    def test_each_network_is_looked_at(self):
        for tool in ("memcheck", "racecheck"):
            seen = []
            self.look(self.tool_day(True), tool, lambda day, network, precision, name: seen.append(
                (network, precision)) or ["true"])
            self.assertEqual(seen, [("large", "bf16"), ("small", "bf16"), ("small", "exact")])

    def test_a_training_has_a_graph_and_the_whole_batch(self):
        day = self.day(emulated=False)
        os.makedirs(self.path("pack", "expected"))
        self.write(self.path("pack", "expected", "large.json"), '{"recipe": {"batch": 184}}')
        words = sanitizer_steps.training(day, "large", "bf16", "out")
        options = dict(zip(words[2::2], words[3::2]))
        self.assertEqual((options["--batch"], options["--precision"]), ("184", "bf16"))
        self.assertGreaterEqual(int(options["--steps"]), 3, "the first step of a kind is no graph")
        self.assertNotIn("--no-graph", words)
        with self.assertRaises(results.Skipped):
            sanitizer_steps.training(day, "other", "bf16", "out")

    def sanitizer(self, tool, **environment):
        """Its step on a GPU, with a control in the pack."""
        day = self.tool_day(False, **environment)
        os.mkdir(self.path("pack", "device"))
        control = self.path("pack", "device", "sanitizer_control")
        self.tool(control, "#!/bin/sh\nexit 0\n")
        return self.look(day, tool)

    def test_a_sanitizer_has_to_find_its_control(self):
        for tool, mistake in sanitizer_steps.MISTAKES.items():
            with self.subTest(tool=tool):
                self.setUp()
                self.assertIn(f"it reports the control's {mistake}", self.sanitizer(tool))

    def test_a_sanitizer_that_finds_nothing_anywhere_fails(self):
        with self.assertRaisesRegex(results.Failed, "racecheck does not report control_race.* 0 hazards"):
            self.sanitizer("racecheck", STAND_IN_BLIND="racecheck")

    def test_a_sanitizer_has_to_name_the_controls_kernel(self):
        with self.assertRaisesRegex(results.Failed, "does not report control_uninitialised"):
            self.sanitizer("initcheck", STAND_IN_BLIND="initcheck", STAND_IN_FINDS="initcheck")


class Profiles(Folder):
    FORESEEN = {"words": ["--model", "dogcat"], "kernels": "gemm|pool", "count": 12,
                "skip": {"H100": 19, "A100": 17},
                "families": {"H100": ["gemm Forward 128x128", "gemm Forward 256x64"], "A100": []}}

    def profile(self, script, **of_day):
        self.tool("ncu", script)
        day = self.day(**of_day)
        day.given_tools = self.folder
        with mock.patch.object(day.bundle, "read_json", lambda *_: {"a network": self.FORESEEN}), \
                mock.patch.object(profile_steps, "program", lambda *_: ["true"]):
            return day, profile_steps.profile("a network")(day)

    @staticmethod
    def stand_in():
        with open(os.path.join(STAND_INS, "ncu")) as file:
            return file.read()

    def test_why_warps_wait(self):
        day, said = self.profile(self.stand_in())
        self.assertIn("3 launches of 2 families: gemm Forward 128x128 waits for mio_throttle 20 %, wait 14 %; ", said)
        self.assertTrue(said.endswith("; not seen: gemm Forward 256x64"), said)
        rows = day.results.facts["ncu"]["a network"]["families"]
        self.assertEqual([(row["kernel"], row["launches"], row["microseconds"]) for row in rows],
                         [("gemm Forward 128x128", 2, 2000), ("max_pool_backward", 1, 500)])
        # 18 reasons have a number, 17 of them 1 and one 7. By time the first launch counts 1,234.5 of 2,000.
        self.assertAlmostEqual(rows[0]["cycles"], 24)
        self.assertAlmostEqual(rows[0]["waits"]["mio_throttle"], (7 * 1234.5 + 765.5) / 2000 / 24)
        self.assertAlmostEqual(rows[1]["waits"]["long_scoreboard"], 7 / 24)
        self.assertNotIn("gmma", rows[0]["waits"], "n/a is no number")
        self.assertEqual((rows[0]["rates"]["shared"], rows[0]["rates"]["l2"]), (62.25, 41.5))

    def test_a_kernel_that_issued_nothing_waits_for_nothing(self):
        metrics = dict.fromkeys(kernel_waits.WAITS.values(), 0.0)
        row = kernel_waits.family("idle", [{"metrics": metrics, "microseconds": 1.0}])
        self.assertEqual((row["cycles"], row["waits"], kernel_waits.reasons(row)), (None, {}, "not told"))

    def test_a_metric_that_ncu_does_not_know_costs_itself_alone(self):
        for code in ("1", "0"):  # whichever it ends with
            with self.subTest(code=code):
                self.setUp()
                day, _ = self.profile(self.stand_in().replace("exit 1", "exit " + code))
                self.assertEqual(day.results.facts["unknown_to_ncu"], ["sm__inst_executed_pipe_tensor.sum"])
                metrics = day.results.facts["ncu"]["a network"]["launches"][0]["metrics"]
                self.assertEqual(metrics["lts__t_bytes.sum"], 4194700)
                self.assertEqual(set(kernel_waits.METRICS) - set(metrics), {"sm__inst_executed_pipe_tensor.sum"})

    def test_where_ncu_knows_no_metric_it_still_profiles(self):
        for says in ("Failed to find metric regex:^smsp__odd\\\\.(sum|avg)\\$", "Failed to find metric"):
            with self.subTest(says=says):
                self.setUp()
                script = self.stand_in().replace("if [[ ,$metrics,", f'[[ $metrics ]] && {{ echo "==ERROR== {says}"; '
                                                 "exit 1; }\nif [[ ,$metrics,")
                day, said = self.profile(script)
                self.assertIn("gemm Forward 128x128 waits for not told", said)
                self.assertEqual(len(day.results.facts["unknown_to_ncu"]), len(kernel_waits.METRICS))

    def test_a_profile_that_ends_badly_fails(self):
        with self.assertRaisesRegex(results.Failed, "ncu, after 3 launches, ended with 9"):
            self.profile(self.stand_in() + "exit 9\n")
        self.setUp()
        with self.assertRaisesRegex(results.Failed, "ncu profiled no kernel"):
            self.profile("#!/bin/sh\necho '==PROF== nothing'\n")

    def test_counters_that_nobody_may_read_skip_it(self):
        with self.assertRaisesRegex(results.Skipped, "ERR_NVGPUCTRPERM"):
            self.profile("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1\n")

    def test_its_words(self):
        day = self.day(emulated=False)
        day.device = "NVIDIA A100-SXM4-80GB"
        self.assertEqual(profile_steps.of_gpu(day, self.FORESEEN["skip"]), 17)
        day.device = "NVIDIA B200"
        self.assertEqual(profile_steps.of_gpu(day, self.FORESEEN["skip"]), 19, "a GPU that nobody foresaw")
        words = profile_steps.program(day, "a network", self.FORESEEN)
        self.assertIn("--no-graph", words)
        self.assertEqual(words[words.index("--steps") + 1], "2", "backward of the first, forward of the second")


class PyTorch(Folder):
    TWIN = pytorch_steps.TWINS[1]

    def compiled_by(self, script, seconds=3):
        """What both steps say, with a script in the place of PyTorch."""
        os.makedirs(self.path("pack", "peers"))
        self.tool("python", "#!/bin/bash\n" + script)
        day = self.day(emulated=False)
        day.python = self.path("python")
        day.step_end = time.monotonic() + pytorch_steps.SPARE + seconds
        return day, pytorch_steps.begin_compiling(day), pytorch_steps.end_compiling(day)

    WRITES = """while [[ $1 != --json ]]; do shift; done
echo '{"seconds": 12.5, "results": [{"status": "compiled"}]}' >"$2"
"""

    def test_networks_are_compiled_beside_each_other(self):
        waits = (f"touch {self.path('begun')}-$$\n"
                 f"until [[ $(ls {self.path('begun')}-* | wc -l) == 3 ]]; do sleep 0.1; done\n")
        day, begun, ended = self.compiled_by(self.WRITES + waits, seconds=60)
        self.assertEqual(begun, "3 networks, beside the tests")
        self.assertEqual(ended.split("; ")[1], "resnet50v2 224: 1 modes in 12 s")
        self.assertEqual(set(day.results.facts["compiled"]), {twin.name for twin in pytorch_steps.TWINS})

    def test_what_compiles_too_long_is_ended_and_keeps_what_it_has(self):
        day, _, ended = self.compiled_by(self.WRITES + "sleep 600\n")
        self.assertIn("dogcat 256: 1 modes in 12 s, then ended", ended)
        self.assertEqual(list(processes.marked(self.commands.token)), [])

    def test_without_pytorch_nothing_goes_on(self):
        with self.assertRaisesRegex(results.Skipped, "no PyTorch"):
            self.compiled_by('[[ " $* " == *" 256 "* ]] && { echo "no PyTorch"; exit 77; }\nsleep 600\n')
        self.assertEqual(list(processes.marked(self.commands.token)), [])

    def told(self, parameters):
        day = self.day(emulated=False)
        modes = [{"mode": pytorch_steps.BEST, "batch": 128, "status": "measured", "parameters": parameters,
                  "images_per_second": {"median": 3000.0}}]
        with mock.patch.object(day.bundle, "read_json", lambda *_: {"resnet50v2": 25613800}):
            return day, pytorch_steps.told(day, self.TWIN, modes, processes.Done(0, "", 1.0, False))

    def test_a_network_of_other_parameters_is_no_twin(self):
        with self.assertRaisesRegex(results.Failed, "has 25,583,592 parameters, and ours 25,613,800"):
            self.told(25583592)


if __name__ == "__main__":
    unittest.main()
