"""The whole program on the emulated device: what it says of it, its ranks on devices, and what it learns."""
import json
import os
import shlex
import subprocess
import unittest

from cuda_cases import CUDA, NET, CudaCases, CudaTest
from program import PROGRAM, mpirun, needs_mpi

BUGS = os.path.join(os.environ["CUDA_TESTS_BUILD"], "tests", "cuda", "bugs")
EMULATED = "This program computes --backend cuda on an EMULATED device"


class Emulated(CudaCases, CudaTest):
    def test_it_says_that_it_is_emulated(self):
        steps = ["--steps", "1", "--limit-val", "0"]
        _, said = self.losses("gpu", *steps, *CUDA)
        self.assertTrue(said.startswith(EMULATED), said)
        _, said = self.losses("cpu", *steps, "--backend", "reference")
        self.assertNotIn("EMULATED", said)
        found = []
        for run in ("gpu", "cpu"):
            found.append(self.json_of(run, "environment.json").get("emulated"))
        self.assertEqual(found, [True, None])

    def test_a_gpu_without_machine_code_may_begin_slowly(self):
        """Said once, before a kernel is used; never of GPUs that the build has machine code for."""
        steps = ["--steps", "1", "--limit-val", "0", "--overwrite", *CUDA]
        slow = "no machine code for compute capability 10.0, so the driver compiles kernels where they are first used"
        for gpu, times in (("a100", 0), ("b200", 1)):
            _, said = self.losses("gpu", *steps, CPUTRAIN_EMULATED_GPU=gpu)
            self.assertEqual(said.count(slow), times, said)
            self.assertEqual(said.count("machine code"), times, said)
        lines = said.splitlines()
        self.assertEqual([line for line in lines if slow in line], [lines[2]], said)
        self.assertTrue(lines[1].startswith("Devices: "), said)
        _, said = self.losses("gpu", *steps, "--verbose", "0", CPUTRAIN_EMULATED_GPU="b200")
        self.assertNotIn(slow, said)

    @needs_mpi
    def test_ranks_say_once_that_they_may_begin_slowly(self):
        _, said = self.losses("gpu", "--steps", "1", "--limit-val", "0", *CUDA, ranks=2, CPUTRAIN_EMULATED_GPU="b200")
        self.assertEqual(said.count("no machine code"), 1, said)

    def test_groups_that_are_slow_are_named(self):
        """Neither a group for each channel nor what a CPU trains."""
        first, *layers = NET["layers"]
        first = {**first, "filters": 8}
        steps = ["--steps", "1", "--limit-val", "0", "--overwrite"]
        for groups, device, warned in ((4, CUDA, True), (8, CUDA, False), (4, ["--backend", "reference"], False)):
            grouped = {"type": "convolution", "name": "grouped", "filters": 8, "kernel": 3, "groups": groups}
            self.write("odd.json", {**NET, "layers": [first, grouped, *layers]})
            _, said = self.losses("1", *steps, *device)
            self.assertEqual("groups of several channels, as layer grouped, is slow" in said, warned, said)

    def test_the_checked_kernels_give_the_same_bits(self):
        steps = ["--steps", "2", "--limit-val", "0"]
        for kind in ("plain", "checked"):
            self.losses(kind, *steps, *CUDA, CPUTRAIN_EMULATED=kind)
        self.assertEqual(self.hash_of("plain"), self.hash_of("checked"))

    def counts(self, steps, *words, **options):
        name = f"counts-{steps}.json"
        self.losses(str(steps), "--steps", str(steps), "--limit-val", "0", "--overwrite", *CUDA, *words,
                    CPUTRAIN_EMULATED_COUNTS=name, **options)
        return self.json_of(name)

    def counts_of_a_step(self, *words, **options):
        """One of ten images, made when it is asked for: what a training of three steps takes more than one of two."""
        def less(now, before):
            if isinstance(now, dict):
                return {key: less(value, (before or {}).get(key)) for key, value in now.items()}
            return now - (before or 0)
        words = ("--prefetch", "0", *words)
        return less(self.counts(3, *words, **options), self.counts(2, *words, **options))

    def test_a_timeline_names_phases_for_other_tools(self):
        ranges = self.counts(2, "--timeline", self.path("timeline.json"))["ranges"]
        for phase in ("input", "forward", "backward", "exchange", "agree"):
            self.assertGreaterEqual(ranges.get(phase, 0), 2, ranges)
        self.assertEqual(self.counts(2)["ranges"], {})

    def test_what_a_step_asks_of_the_device(self):
        pixels, label, sample, move, sums = 21 * 21 * 3, 4, 4, 32, 4 * 8
        for words, each in ((["--data-on-device", "off"], pixels), (["--data-on-device", "on"], 0)):
            step = self.counts_of_a_step(*words)
            self.assertEqual(step["copies"],
                             {"host_to_device": {"calls": 1, "bytes": 10 * (each + label + sample + move)},
                              "device_to_host": {"calls": 1, "bytes": sums},
                              "device_to_device": {"calls": 0, "bytes": 0}})
            # For memory of the copy that is free, and for the sums of losses, one step late.
            self.assertEqual(step["host_waits"], {"stream": 0, "event": 1 + 1, "copy": 0})
            self.assertEqual(step["graphs"], 1)
        self.assertEqual(step["events_recorded"]["timed"], 0)
        launches = {name: kernel["launches"] for name, kernel in step["kernels"].items()}
        for name, times in {"first_block_forward": 1, "first_block_backward_weights": 1, "relu_forward": 2,
                            "relu_backward": 2, "dropout": 2, "softmax_forward": 1, "add_losses": 1,
                            "cross_entropy_backward": 1, "update": 1, "write_facts": 1}.items():
            self.assertEqual(launches[name], times, f"{name} of {launches}")
        self.assertEqual(sum(launches.values()), step["launches"])

    def test_sums_that_are_read_before_the_device_has_them(self):
        """A bug that is planted: what the host reads is poison yet."""
        self.expect(1, *self.words, "--out", "run", "--steps", "3", *CUDA, says=["Batch 0: Invalid loss"],
                    CPUTRAIN_PLUGINS=BUGS, PLANTED_BUG="early_tally")

    def weights_with(self, bug, *words, **options):
        """The weights' hash where a bug is planted, or nothing where the training fails."""
        done = self.run_program(*self.words, "--out", bug, "--limit-val", "0", *CUDA, *words,
                                CPUTRAIN_PLUGINS=BUGS, PLANTED_BUG=bug, CPUTRAIN_EMULATED_ORDER="reverse",
                                **options)
        return self.hash_of(bug) if done.returncode == 0 else None

    def test_a_graph_that_keeps_the_facts_of_a_pass(self):
        """A bug that is planted: the third step has the dropout and the images of the second."""
        steps = ["--steps", "3"]
        self.losses("right", *steps, "--limit-val", "0", *CUDA)
        self.assertNotEqual(self.weights_with("stale_facts", *steps), self.hash_of("right"))

    def test_a_graph_that_keeps_the_rate_of_a_step(self):
        """A bug that is planted: the third step has the rate of the second, and its momentum's correction."""
        steps = ["--steps", "3", "--schedule", "decay:1"]
        self.losses("right", *steps, "--limit-val", "0", *CUDA)
        self.assertNotEqual(self.weights_with("stale_rate", *steps), self.hash_of("right"))

    @needs_mpi
    def test_gradients_that_are_sent_before_they_are_there(self):
        """A bug that is planted: their events are recorded in a stream that holds nothing."""
        steps = ["--steps", "2"]
        self.losses("right", *steps, "--limit-val", "0", *CUDA, ranks=2)
        self.assertNotEqual(self.weights_with("wrong_stream", *steps, ranks=2), self.hash_of("right"))

    def test_images_have_the_same_bits_however_they_get_there(self):
        steps = ["--steps", "3", "--limit-val", "10", "--augment", "six,flip,crop:2"]
        hashes = set()
        for run, words, order in (("kept", ["--data-on-device", "on"], "forward"),
                                  ("sent", ["--data-on-device", "off"], "reverse"),
                                  ("random", ["--data-on-device", "off"], "random:1"),
                                  ("direct", ["--data-on-device", "off", "--prefetch", "0"], "forward"),
                                  ("no graph", ["--data-on-device", "off", "--no-graph"], "reverse")):
            _, said = self.losses(run, *steps, *CUDA, *words, CPUTRAIN_EMULATED_ORDER=order)
            self.assertEqual("those of training stay on the device" in said, run == "kept", said)
            hashes.add(self.hash_of(run))
        self.assertEqual(len(hashes), 1)

    def test_images_that_cannot_stay_on_the_device(self):
        words = [*self.words, "--dry-run", *CUDA]
        rotated = ["--augment", "rotate:10"]
        self.expect(2, *words, *rotated, "--data-on-device", "on", says=["--augment rotate:10", "moves pixels"])
        self.expect(0, *words, *rotated, says=["changed on the host and sent to the device batch by batch"])
        # The emulated device has half of the host's memory.
        plan = json.loads(self.expect(0, *words, "--json", "-").stdout)["memory"]
        side, host = 256, plan["nodes"][0]["available"]
        large = ["train", "--model", "odd.json", "--dry-run", "--threads", "1", "--validation-split", "0", *CUDA,
                 "--data", f"synthetic:{int(0.75 * host / (3 * side * side))}", "--image-size", str(side)]
        self.expect(2, *large, "--data-on-device", "on", says=["--data-on-device on: the training images need"])
        self.expect(0, *large, says=["sent to the device batch by batch ("])
        first = [*words, "--decode", "first"]  # else images that are sent may need a copy
        plans = (json.loads(self.expect(0, *first, "--data-on-device", word, "--json", "-").stdout)["memory"]
                 for word in ("on", "off"))
        on, off = (plan["ranks"][0] for plan in plans)
        pixels, kept = 21 * 21 * 3, 54
        slots = 2 * 10 * pixels  # of training: bytes of ten images
        self.assertEqual(on["images_on_device"] - off["images_on_device"], kept * pixels - slots)
        self.assertEqual(off["batches_in_flight"] - on["batches_in_flight"], slots)

    def test_counts_need_no_kernels_to_run(self):
        self.assertEqual(self.counts_of_a_step(CPUTRAIN_EMULATED_KERNELS="skip"), self.counts_of_a_step())

    def test_counts_that_cannot_be_written_end_with_74(self):
        self.expect(74, *self.words, "--out", "run", *CUDA, CPUTRAIN_EMULATED_COUNTS="/nowhere/f",
                    says=["CPUTRAIN_EMULATED_COUNTS=/nowhere/f"])
        if not os.path.exists("/dev/full") or os.path.isfile("/dev/full"):
            self.skipTest("/dev/full is no device here")
        done = self.expect(74, "info", "--backend", "cuda", CPUTRAIN_EMULATED_COUNTS="/dev/full",
                           says=["CPUTRAIN_EMULATED_COUNTS=/dev/full", "No space left on device", "name a file"])
        self.assertIn("Backend: emulated H100", done.stdout)

    def test_a_setting_that_is_unknown_is_what_is_refused(self):
        for name in ("KERNELS", "ORDER", "GPU", "DEVICES"):
            for words in (["info"], [*self.words, "--out", "run", *CUDA]):
                with self.subTest(name=name, words=words):
                    done = self.expect(2, *words, says=[f"CPUTRAIN_EMULATED_{name}=nonsense is not known; give "],
                                       **{f"CPUTRAIN_EMULATED_{name}": "nonsense"})
                    self.assertNotIn("nvidia-smi", done.stdout + done.stderr)
                    self.assertNotIn("another --backend", done.stderr)

    def test_a_profile_times_every_layer(self):
        self.assertGreater(self.counts(2, "--profile")["events_recorded"]["timed"], 0)
        profile = self.json_of("2", "profile.json")
        layers = {layer["name"]: layer for layer in profile["layers"]}
        self.assertGreater(layers["conv2d"]["forward"]["seconds"], 0, profile)

    @needs_mpi
    def test_ranks_take_devices_in_turn(self):
        for ranks, devices, line in ((3, 2, "1 x {0} with 1 rank, 1 x {0} with 2 ranks"),
                                     (2, 2, "2 x {} with 1 rank each")):
            with self.subTest(ranks=ranks, devices=devices):
                said = self.expect_ranks_share(ranks, line, CPUTRAIN_EMULATED_DEVICES=str(devices))
                self.assertEqual(said.count(EMULATED), 1)

    @needs_mpi
    def test_ranks_with_other_backends_or_precisions_are_refused(self):
        first = ["--backend", "reference", "--precision", "exact"]
        for other in (CUDA, ["--backend", "reference", "--precision", "double"]):
            with self.subTest(other=other):
                # By rank and not by mpirun's colon, at which that of Debian 13 dies (Open MPI 5.0.7, SIGSEGV).
                with open(self.path("start"), "w") as f:
                    f.write(f'#!/bin/sh\n[ "${{OMPI_COMM_WORLD_RANK-$PMI_RANK}}" = 0 ] && exec "$@" {shlex.join(first)}\n'
                            f'exec "$@" {shlex.join(other)}\n')
                done = subprocess.run([*mpirun(2), "sh", "start", PROGRAM, *self.words, "--steps", "1"],
                                      cwd=self.folder, text=True, timeout=120, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn("ranks differ in their backend or precision", done.stderr)
                for rank, own in enumerate((first, other)):
                    self.assertIn(f"ranks {rank}: {' '.join(own)}", done.stderr)

    def test_no_time_of_it_gets_into_a_table(self):
        self.expect(2, "sweep", "--backend", "cpu,cuda", "--precision", "exact", "--np", "1", "--out", "s",
                    says=["--backend cuda", "sweep measures times", "emulated"])
        self.assertFalse(os.path.exists(self.path("s")))
        for topic in ("step", "kernels", "allreduce"):
            self.expect(2, "bench", topic, *CUDA, says=[f"bench {topic} measures times", "emulated"])

    def test_info_and_json(self):
        self.expect(0, "info", says=["GPUs for --backend cuda: emulated "])
        self.expect(0, "info", "--backend", "cuda", says=["Backend: emulated H100"])
        done = self.expect(0, "info", *CUDA, "--json", "-", says=[EMULATED])
        self.assertTrue(json.loads(done.stdout)["cuda"]["devices"][0]["emulated"])


if __name__ == "__main__":
    unittest.main()
