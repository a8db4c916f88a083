"""Simulated tables through the program itself: costs that are made up, so that times are known."""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest
from tiny import TINY

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../results")
SIMULATES = os.environ.get("CPUTRAIN_SIMULATES") == "1"
SIZES = [1, 8, 32]
LAYER = "sigmoid"  # the last one, without weights: stands for all
FORWARD, BACKWARD = 1e-3, 3e-3  # seconds an image
UPDATE = 1e-9  # seconds a number
SUM_GBS, CORE_GBS = 20, 40
IMAGES = 900  # of synthetic:1000, the rest is for validation


def needs_simulator(test):
    return unittest.skipUnless(SIMULATES, "this build has no simulator")(test)


def costs(spread=0):
    active = [{"active": n, "threads": threads, "fma_gflops": 100, "triad_gbs": n * CORE_GBS, "update_seconds_per_number": UPDATE,
               "sum_gbs": SUM_GBS, "spread": spread, "drift": 0,
               "layers": [{"name": LAYER, "forward": [FORWARD / threads * n for n in SIZES],
                           "backward": [BACKWARD / threads * n for n in SIZES]}]}
              for n, threads in ((1, 1), (2, 1), (1, 2))]
    return {"format": "cputrain costs 2", "cpu": "made up", "host": "nowhere", "build": "0", "model": "dogcat",
            "image_size": 64, "classes": 1, "network": "made up", "cores": 2, "hardware_threads": 2,
            "memory_bytes": 64e9, "sizes": SIZES, "workspace_bytes": [1e6 * n for n in SIZES], "by_active": active}


def cluster(gbps, cores=1):
    return {"format": "cputrain platform 1", "name": "two", "description": "two small machines", "sources": [],
            "nodes": 2, "cores": cores, "threads_per_core": 1, "memory_gb": 64,
            "memory": {"core_gbs": CORE_GBS, "node_gbs": CORE_GBS, "latency_us": 0},
            "network": {"gbps": gbps, "latency_us": 0, "efficiency": 1}}


class Simulate(ProgramTest):
    def simulate(self, *words, spread=0):
        self.write("costs.json", costs(spread))
        done = self.expect(0, "simulate", "--costs", "costs.json", "--image-size", "64", "--data", "synthetic:1000",
                           "--json", "-", *words)
        return json.loads(done.stdout)

    @needs_simulator
    def test_one_rank_takes_the_time_of_its_costs(self):
        table = self.simulate("--platform", "here", "--np", "1", "--batch", "64,90")
        for cell in table["cells"]:
            n = table["parameters"]
            # The sum of one array is there already; eight images at once.
            step = cell["batch"] * (FORWARD + BACKWARD) + n * UPDATE
            self.assertEqual(cell["status"], "simulated")
            self.assertAlmostEqual(cell["seconds_per_epoch"] / (step * IMAGES / cell["batch"]), 1, delta=0.002)
            self.assertAlmostEqual(sum(cell["budget"].values()), cell["seconds_per_epoch"], places=6)
            self.assertEqual(cell["limits"]["what"], "compute")

    @needs_simulator
    def test_a_sum_over_two_nodes_takes_the_time_of_its_bytes(self):
        for gbps in 1, 8:
            platform = self.write(f"cluster{gbps}.json", cluster(gbps))
            table = self.simulate("--platform", platform, "--np", "2", "--batch", "64")
            cell, = table["cells"]
            # A ring of two sends each half twice, in both directions at once, and adds one half in memory.
            size = 4 * table["parameters"]
            seconds = size / (gbps * 1e9 / 8) + 3 * size / 2 / (CORE_GBS * 1e9)
            exposed = cell["budget"]["allreduce_exposed"] / (IMAGES / 64)
            self.assertAlmostEqual(exposed / seconds, 1, delta=0.03)

    @needs_simulator
    def test_threads_of_a_rank_share_its_images(self):
        table = self.simulate("--platform", "here", "--np", "1,2", "--threads", "1,2", "--batch", "64")
        one, ranks, threads = table["cells"]
        self.assertEqual([(c["ranks"], c["threads"]) for c in table["cells"]], [(1, 1), (2, 1), (1, 2)])
        for cell in ranks, threads:
            passes = [c["budget"]["forward"] + c["budget"]["backward"] for c in (one, cell)]
            self.assertAlmostEqual(passes[0] / passes[1], 2, delta=0.01)
        cell, = self.simulate("--platform", "here", "--np", "3", "--threads", "3", "--batch", "64")["cells"]
        self.assertIn("2 hardware threads", cell["reason"])

    @needs_simulator
    def test_hundreds_of_ranks_take_little_memory(self):
        cell, = self.simulate("--platform", "cluster-8x10g", "--np", "256", "--batch", "1024", "--repeat", "1",
                              "--steps", "1")["cells"]
        self.assertEqual(cell["status"], "simulated")
        self.assertGreater(cell["budget"]["allreduce_exposed"], 0)
        # A bound on every child so far; calibrations of small images take far less.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 20)  # KiB

    @needs_simulator
    def test_costs_measured_here_add_up_to_the_forecast(self):
        self.write("tiny.json", TINY)
        words = ["simulate", "--platform", "here", "--np", "1", "--batch", "64", "--model", "tiny.json", "--data",
                 "synthetic:1000", "--image-size", "64", "--micro-batch", "8", "--json", "-"]
        done = self.expect(0, *words, "--out", "here", "--repeat", "9", "--measure-seconds", "1",
                           timeout=240)  # a busy machine takes its time for twelve rounds
        self.assertIn("at least 1 s", done.stderr)
        self.assertGreater(json.loads(done.stdout)["cells"][0]["budget"]["backward"], 0)
        table = self.json_of("here", "costs.json")
        for active in table["by_active"]:
            active["spread"] = 0  # disturbances are drawn by what was measured, whatever that was here
        self.write("calm.json", table)
        cell, = json.loads(self.expect(0, *words, "--costs", "calm.json").stdout)["cells"]
        alone = table["by_active"][0]
        at = table["sizes"].index(8)  # images at once
        seconds = {way: sum(layer[way][at] for layer in alone["layers"]) / 8 * IMAGES for way in ("forward", "backward")}
        for way, each in seconds.items():
            self.assertGreater(each, 0)
            self.assertAlmostEqual(cell["budget"][way] / each, 1, delta=0.02)

    @needs_simulator
    def test_shares_and_disturbances(self):
        even, uneven = self.simulate("--platform", "here", "--np", "2", "--batch", "64,5")["cells"]
        self.assertLess(even["budget"]["straggler_wait"], 0.01 * even["seconds_per_epoch"])
        self.assertGreater(uneven["budget"]["straggler_wait"], 0.05 * uneven["seconds_per_epoch"])  # 3 and 2 images
        words = ["--platform", "here", "--np", "2", "--batch", "64"]
        a, b = (self.simulate(*words, spread=0.1)["cells"] for _ in range(2))
        other = self.simulate(*words, "--seed", "1", spread=0.1)["cells"]
        self.assertEqual(a, b)
        self.assertNotEqual(a[0]["repeats"], other[0]["repeats"])
        self.assertLess(a[0]["spread"][0], a[0]["spread"][1])

    @needs_simulator
    def test_clock_and_memory_change_the_forecast(self):
        def seconds(*words):
            cells = self.simulate("--platform", "skylake-96", "--np", "8", "--batch", "64", *words)["cells"]
            return cells[0]["seconds_per_epoch"]
        self.assertAlmostEqual(seconds("--clock-ghz", "1") / seconds("--clock-ghz", "2"), 2, delta=0.1)
        self.assertGreater(seconds("--memory-gbs", "5"), seconds("--memory-gbs", "100"))

    @needs_simulator
    def test_the_range_holds_the_share_of_the_peak_that_cores_may_reach(self):
        words = ["--platform", "skylake-96", "--np", "8", "--batch", "64"]
        table = self.simulate(*words)
        (cell,) = table["cells"]
        low, high = cell["spread"]
        self.assertLess(low, 0.9 * min(cell["repeats"]))
        self.assertGreater(high, 1.5 * max(cell["repeats"]))
        self.assertRegex(table["costs"], r"a core reaches [0-9.]+ \([0-9.]+ to [0-9.]+\) of its peak of multiply-adds")
        shares = [self.simulate(*words, "--peak-share", share)["cells"][0] for share in ("1", "2")]
        passes = [c["budget"]["forward"] + c["budget"]["backward"] for c in shares]
        self.assertAlmostEqual(passes[0] / passes[1], 2, delta=0.05)
        self.assertLess(shares[0]["spread"][1] / shares[0]["spread"][0], 1.2)  # of disturbances alone

    @needs_simulator
    def test_costs_of_other_kernels_are_said_in_the_table(self):
        self.write("old.json", dict(costs(), kernels="a library, own kernels 1 by 2", date="2026-01-02"))
        done = self.expect(0, "simulate", "--costs", "old.json", "--image-size", "64", "--data", "synthetic:1000", "--json",
                           "-", "--platform", "here", "--np", "1", "--batch", "64")
        self.assertRegex(json.loads(done.stdout)["costs"], r"measured on 2026-01-02, with kernels 1 \(this program has \d+\)")

    def published(self, platform, *words):
        """Cells of dogcat with published costs, by CPUs."""
        done = self.expect(0, "simulate", "--costs", os.path.join(RESULTS, "simulated/published/costs.json"), "--platform",
                           platform, "--data", "synthetic:25000", "--json", "-", *words)
        return {cell["cpus"]: cell for cell in json.loads(done.stdout)["cells"]}

    @needs_simulator
    def test_hosts_of_gpus_are_forecast_as_they_were_measured(self):
        for gpu in "h100", "h200":
            with open(os.path.join(RESULTS, f"gpu-{gpu}/benchmarks.json"), encoding="utf-8") as file:
                measured = json.load(file)
            cells = self.published(f"{gpu}-host-16", "--np", "1,8,16", "--batch", "128")
            for cpus, name in (1, "cpu_1_CPU"), (8, "cpu_8_CPUs"), (16, "cpu_16_ranks"):
                seconds = 22500 / measured[name]["images_per_second"]["median"]
                self.assertAlmostEqual(cells[cpus]["seconds_per_epoch"] / seconds, 1, delta=0.15, msg=(gpu, name))

    @needs_simulator
    def test_the_range_of_the_published_table_holds_what_is_likely(self):
        # 9.4 s is what the shares of two Intel hosts make of it, with weights as trained as the costs'; 11.0 s without.
        cell = self.published("skylake-vcpus", "--np", "96", "--batch", "1024", "--micro-batch", "16")[96]
        low, high = cell["spread"]
        self.assertLess(low, 9.4)
        self.assertGreater(high, 11.0)
        self.assertTrue(low < cell["seconds_per_epoch"] < high, cell)

    @needs_simulator
    def test_a_machine_grows_with_the_cell(self):
        # Two hardware threads of a core compute as much as one does: 2 CPUs take the time of 1, 4 half of it.
        grows = {"format": "cputrain platform 1", "name": "grows", "description": "a VM for each cell", "sources": [],
                 "nodes": 1, "grows_with_cell": True, "cores": 4, "threads_per_core": 2, "memory_gb": 64, "noise": 0,
                 "cpu": {"flops_per_cycle": 100, "clock_ghz": [{"active_cores": 1, "ghz": 1}], "second_thread_gain": 1},
                 "memory": {"core_gbs": CORE_GBS, "node_gbs": 4 * CORE_GBS, "latency_us": 0}}
        words = ["--platform", self.write("grows.json", grows), "--np", "1,2,4,8", "--batch", "64", "--micro-batch", "8"]
        table = self.simulate(*words, "--out", "table")
        one, *others = (c["budget"]["forward"] + c["budget"]["backward"] for c in table["cells"])
        for passes, times in zip(others, (1, 2, 4)):
            self.assertAlmostEqual(one / passes, times, delta=0.02)
        self.assertEqual(table["machine"]["cpus_per_core"], 2)
        self.expect(0, "report", "table")
        fit, = self.json_of("table", "report.json")["fits"]
        self.assertEqual((fit["cpus_per_core"], fit["times"], fit["status"]), (2, 4, "simulated"))
        # 900 images of 4 ms, and what update and sums take.
        self.assertAlmostEqual(fit["work_core_seconds"], IMAGES * (FORWARD + BACKWARD), delta=0.3)

    @needs_simulator
    def test_a_cell_that_is_quicker_than_its_cpus_explain_says_why(self):
        # Half the time an image in micro-batches of 32: a rank alone takes 8.
        quick = costs()
        for active in quick["by_active"]:
            for way in "forward", "backward":
                active["layers"][0][way][2] /= 2
        self.write("quick.json", quick)
        done = self.expect(0, "simulate", "--costs", "quick.json", "--image-size", "64", "--data", "synthetic:1000",
                           "--json", "-", "--platform", "here", "--np", "1,2", "--batch", "256", "--out", "table")
        one, two = json.loads(done.stdout)["cells"]
        self.assertNotIn("because", one["limits"]["why"])
        self.assertRegex(two["limits"]["why"],
                         r"; 1[0-9]{2}\.[0-9] % of the speed of 1 CPU for each as many, because by its costs an image takes "
                         r"[0-9.]+ % less time in micro-batches of 16 than of 8$")
        same = self.simulate("--platform", "here", "--np", "1,2", "--batch", "256", "--micro-batch", "16")["cells"]
        self.assertNotIn("because", same[1]["limits"]["why"])

    @needs_simulator
    def test_what_a_platform_has_not_is_na_and_a_folder_can_be_reported(self):
        table = self.simulate("--platform", "here", "--np", "1,3", "--batch", "64", "--out", "table")
        self.assertEqual([cell["status"] for cell in table["cells"]], ["simulated", "n/a"])
        self.assertIn("2 CPUs", table["cells"][1]["reason"])
        self.assertIsNone(table["cells"][1]["seconds_per_epoch"])
        self.assertEqual(self.json_of("table", "cells.json")["cells"], table["cells"])
        self.expect(0, "report", "table")
        self.expect(2, "simulate", "--out", "table", says=["--overwrite"])

    @needs_simulator
    def test_a_cell_that_needs_more_memory_than_its_machine_has_says_how_much(self):
        # All parts but the activations, whose bytes are those of the costs: 1e6 an image, 8 at once.
        done = self.expect(0, "train", "--dry-run", "--json", "-", "--image-size", "64", "--data", "synthetic:1000",
                           "--batch", "64", "--micro-batch", "8", "--threads", "1", "--decode", "first")
        memory = json.loads(done.stdout)["memory"]
        rank, node = memory["ranks"][0], memory["nodes"][0]
        needed = rank["total"] - rank["process"] - rank["workspace"] + 8e6 + node["image_cache"] + node["weights"]
        words = ["--np", "1", "--batch", "64", "--micro-batch", "8", "--platform", "skylake-vcpus"]
        cell, = self.simulate(*words, "--platform-memory", str(1.01 * needed / 1e9))["cells"]
        self.assertEqual(cell["status"], "simulated")
        table = self.simulate(*words, "--platform-memory", str(0.99 * needed / 1e9))
        cell, = table["cells"]
        self.assertEqual(cell["status"], "n/a")
        said, = re.findall(r"needs ([0-9.]+) MB of memory on host node-0", cell["reason"])
        self.assertAlmostEqual(float(said) / (needed / 1e6), 1, delta=0.006)  # three digits
        self.assertIn(f"{0.99 * needed / 1e6:.3g} MB are available", cell["reason"])
        self.assertIn("platform-memory", table["options"])
        self.assertRegex(table["date"], r"^\d{4}-\d\d-\d\d$")
        self.assertIn("commit", table["commit"])
        self.assertIn("date and commit not recorded", table["costs"])  # of these made-up ones

    @needs_simulator
    def test_a_platform_says_how_noisy_it_is(self):
        def spread(noise, measured):
            platform = self.write("noisy.json", dict(cluster(1), noise=noise))
            cell, = self.simulate("--platform", platform, "--np", "1", "--batch", "64", spread=measured)["cells"]
            return cell["spread"][1] / cell["spread"][0] - 1
        self.assertEqual(spread(noise=0, measured=0.1), 0)
        self.assertGreater(spread(noise=0.1, measured=0), 0.001)

    def stop(self, sent, *words):
        """Starts cells of which the first takes a moment and the others minutes; sends a signal after the first."""
        process = subprocess.Popen(
            [PROGRAM, "simulate", "--costs", "costs.json", "--image-size", "64", "--data", "synthetic:1000", "--platform",
             "cluster-96x10g", "--np", "1,1024,512", "--batch", "1024", "--steps", "200", "--out", "table", *words],
            cwd=self.folder, env={**os.environ, "TMPDIR": self.path("tmp")}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        end = time.time() + 60
        while not glob.glob(self.path("tmp", "*", "cell-4.job.json")):
            self.assertIsNone(process.poll(), "it ended by itself")
            self.assertLess(time.time(), end, "no cell was finished")
            time.sleep(0.05)
        process.send_signal(sent)
        code = process.wait(30)
        self.assertIn("stopped", process.stderr.read())
        self.assertEqual(os.listdir(self.path("tmp")), [])
        return code, self.json_of("table", "cells.json")["cells"]

    @needs_simulator
    def test_a_stop_keeps_the_finished_cells_and_leaves_no_files(self):
        self.write("costs.json", costs())
        os.mkdir(self.path("tmp"))
        code, cells = self.stop(signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertEqual([cell["status"] for cell in cells], ["simulated", "n/a", "n/a"])
        self.assertIn("stopped", cells[1]["reason"])
        self.assertEqual(self.stop(signal.SIGTERM, "--overwrite", "--seed", "1"), (75, cells))  # a table that was there stays

    def test_bad_grids_are_named(self):
        self.expect(2, "simulate", "--np", "0", says=["--np 0"])
        self.expect(2, "simulate", "--np", "1,1", says=["different"])

    @needs_simulator
    def test_mistakes_are_named(self):
        self.write("costs.json", costs())
        for words, says in [
                (["--platform", "nowhere"], ["--platform nowhere", "skylake-96"]),
                (["--platform", "here", "--clock-ghz", "2"], ["--clock-ghz"]),
                (["--platform", "here", "--peak-share", "2"], ["--peak-share"]),
                (["--network-gbps", "2"], ["--network-gbps"]),
                (["--measure-seconds", "2"], ["--measure-seconds", "--costs", "exclude each other"]),
                (["--image-size", "128"], ["--costs", "64x64"])]:
            with self.subTest(words=words):
                size = [] if "--image-size" in words else ["--image-size", "64"]
                self.expect(2, "simulate", "--costs", "costs.json", *size, *words, says=says)

    @needs_simulator
    def test_costs_of_nothing_here_are_refused(self):
        stranger, idle = costs(), costs()
        for active in stranger["by_active"]:
            active["layers"][0]["name"] = "conv\u20ac9"
        for active in idle["by_active"]:
            for way in "forward", "backward":
                active["layers"][0][way] = [0] * len(SIZES)
        for name, table, says in [("stranger.json", stranger, ["conv\u20ac9", "not one of the model's"]),
                                  ("idle.json", idle, ["take no time"]), ("none.json", None, ["none.json"])]:
            with self.subTest(name=name):
                if table:
                    self.write(name, table)
                self.expect(65, "simulate", "--costs", name, "--image-size", "64", says=says)

    @needs_simulator
    def test_a_platform_file_cannot_steer_a_terminal(self):
        self.write("costs.json", costs())
        self.write("odd.json", dict(cluster(1), name="two\x1b[2J\u009b2J\u202eowt"))
        done = self.expect(0, "simulate", "--costs", "costs.json", "--image-size", "64", "--data", "synthetic:1000",
                           "--platform", "odd.json", "--np", "1,9", "--batch", "64", says=["Simulated (two\\x1b[2J"])
        for sign in "\x1b", "\u009b", "\u202e":
            self.assertNotIn(sign, done.stdout + done.stderr)

    @needs_simulator
    def test_here_has_the_cores_of_its_costs(self):
        table = self.simulate("--platform", "here", "--threads", "1,2", "--batch", "64")
        self.assertEqual([(cell["cpus"], cell["threads"]) for cell in table["cells"]], [(1, 1), (2, 1), (2, 2)])

    def test_batches_that_no_table_holds_are_refused(self):
        self.expect(2, "simulate", "--np", "1024", "--batch-per-rank", "32768",
                    says=["--batch-per-rank 32768", "33554432"])

    def test_without_its_simulator_every_cell_says_so(self):
        def simulate(*words):
            # A copy, which cputrain-smpi does not lie beside.
            alone = shutil.copy(PROGRAM, self.path("alone"))
            return subprocess.run([alone, "simulate", "--np", "1,2", "--batch", "64", *words], cwd=self.folder,
                                  capture_output=True, text=True)
        done = simulate("--json", "-", "--out", "table")
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = json.loads(done.stdout)["cells"]
        self.assertEqual([cell["status"] for cell in cells], ["n/a", "n/a"])
        self.assertIn("cputrain-smpi is not there" if SIMULATES else "CPUTRAIN_SMPI", cells[0]["reason"])
        self.assertEqual(self.json_of("table", "cells.json")["cells"], cells)
        self.write("table/cells.json", {"kept": True})
        self.assertEqual(simulate("--out", "table", "--overwrite").returncode, 0)
        self.assertEqual(self.json_of("table", "cells.json"), {"kept": True})
        wrong = simulate("--platform", "nowhere")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("--platform nowhere", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
