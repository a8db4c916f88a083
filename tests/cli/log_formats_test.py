"""--log-format and --timeline: the logs that other people's programs read, by readers that are not ours."""
import json
import os
import re
import unittest

from program import ProgramTest, needs_mpi

try:
    from mlperf_logging.compliance_checker import mlp_parser
except ImportError:
    mlp_parser = None
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None

# The order of keys and the spaces are what the compliance checker of mlperf_logging reads (ruleset 4.0.0).
MLLOG = re.compile(r':::MLLOG (\{"namespace": "", "time_ms": \d+, "event_type": "(INTERVAL_START|INTERVAL_END|'
                   r'POINT_IN_TIME)", "key": "\w+", "value": .+, "metadata": \{.*\}\})')


class LogFormats(ProgramTest):
    def train_with(self, *words, **options):
        return self.expect(0, "train", "--image-size", "64", "--data", "synthetic:60", "--batch", "20", "--threads",
                           "1", "--epochs", "2", "--log-every", "2", "--out", "run", *words, **options)

    def test_mlperf(self):
        self.train_with("--log-format", "mlperf")
        lines = self.text_of("run/mlperf.log").splitlines()
        for line in lines:
            self.assertRegex(line, MLLOG)
        events = [json.loads(MLLOG.fullmatch(line).group(1)) for line in lines]
        if mlp_parser:
            parsed, errors = mlp_parser.parse_file(self.path("run/mlperf.log"), ruleset="4.0.0")
            self.assertEqual(([e["key"] for e in events], []), ([line.key for line in parsed], errors))
        keys = [e["key"] for e in events]
        for once in ("submission_org", "submission_platform", "submission_division", "init_stop", "run_start",
                     "run_stop", "train_samples", "eval_samples"):
            self.assertEqual(keys.count(once), 1, once)
        epoch = ["epoch_start", "epoch_stop", "eval_start", "eval_accuracy", "eval_stop"]
        self.assertEqual(keys[keys.index("init_start"):],
                         ["init_start", *keys[keys.index("init_start") + 1:keys.index("init_stop")], "init_stop",
                          "run_start", *epoch, *epoch, "run_stop"])
        self.assertEqual(events[-1]["metadata"]["status"], "success")
        times = [e["time_ms"] for e in events]
        self.assertEqual(times, sorted(times))
        said = [e["value"] for e in events if e["key"] == "eval_accuracy"]
        self.assertEqual(said, [m["val_accuracy"] for m in self.metrics("run", "epoch")])
        self.assertEqual([e["metadata"]["epoch_num"] for e in events if e["key"] == "epoch_stop"], [1, 2])

    @unittest.skipUnless(EventAccumulator, "TensorBoard is not there; scripts/check_formats brings it")
    def test_tensorboard_reads_the_epochs(self):
        self.train_with()
        epochs = self.metrics("run", "epoch")
        for part, prefix in (("train", ""), ("validation", "val_")):
            events = EventAccumulator(self.path("run", part))
            events.Reload()
            for tag in "loss", "accuracy":
                read = [event.value for event in events.Scalars("epoch_" + tag)]
                self.assertEqual(len(read), len(epochs))
                for value, epoch in zip(read, epochs):
                    self.assertAlmostEqual(value, epoch[prefix + tag], places=5)

    def test_tf_cnn_benchmarks(self):
        text = self.train_with("--log-format", "tf_cnn_benchmarks", "--log-every", "1", "--no-winograd",
                               "--no-skip-zeros", "--no-tiles").stdout  # no steps that try algorithms
        self.assertRegex(text, r"(?m)^Batch size:  20 global\n             20 per rank$\nNum batches: 6\n"
                               r"Num epochs:  2.00$")
        self.assertRegex(text, r"(?m)^Variables:   replicated\nAllReduce:   None\n==========$")
        steps = re.findall(r"(?m)^(\d+)\timages/sec: (\d+\.\d) \+/- (\d+\.\d) \(jitter = \d+\.\d\)\t(\d\.\d{3})$", text)
        self.assertEqual(steps[0][0], "1")
        self.assertEqual(steps[0][2], "0.0")
        warm = [m for m in self.metrics("run", "step") if m["step"] > 1 and "trying" not in m]
        self.assertEqual(len(steps), len(warm))
        total = re.search(r"(?m)^-{64}\ntotal images/sec: (\d+\.\d\d)\n-{64}$", text)
        # The same figure, rounded to hundredths and to tenths.
        self.assertAlmostEqual(float(total[1]), float(steps[-1][1]), delta=0.005 + 0.05 + 1e-6)
        last = self.metrics("run", "epoch")[-1]
        self.assertIn(f"Accuracy @ 1 = {last['val_accuracy']:.4f} [6 examples]", text)

    def timeline(self, ranks):
        trace = self.json_of("t.json")
        self.assertEqual(set(trace), {"traceEvents", "displayTimeUnit", "otherData"})
        names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
        self.assertEqual(sorted(names), list(range(ranks)))
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        for pid in range(ranks):
            own = sorted((e for e in spans if e["pid"] == pid), key=lambda e: e["ts"])
            for a, b in zip(own, own[1:]):  # one behind the other, but for the clock's own time
                self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 50)
        self.assertTrue(all(e["ts"] >= 0 and e["dur"] >= 0 for e in spans))
        return spans

    def test_timeline_of_some_steps(self):
        self.train_with("--timeline", "t.json:2:3", "--micro-batch", "8")
        spans = self.timeline(1)
        step = [e["name"] for e in spans if e["args"]["step"] == 2]
        first = [name for name in step if name != "penalty"]  # there is none to pay, which may take no time
        self.assertEqual(first[:2], ["wait for data", "forward"])
        self.assertEqual(step.count("forward"), 3)
        self.assertIn("exchange and update", step)
        self.assertLessEqual(set(step), {"wait for data", "forward", "backward", "exchange", "penalty",
                                         "exchange and update", "agree"})
        self.assertEqual({e["args"]["step"] for e in spans}, {2, 3})

    @needs_mpi
    def test_timeline_of_all_ranks(self):
        self.train_with("--timeline", "t.json", ranks=3)
        spans = self.timeline(3)
        self.assertEqual({e["args"]["step"] for e in spans}, {1, 2, 3, 4, 5, 6})
        self.assertEqual({e["pid"] for e in spans if e["name"] == "forward"}, {0, 1, 2})

    def test_a_timeline_destroys_nothing(self):
        for name in ("run/weights.safetensors", "run/metrics.jsonl"):
            self.expect(2, "train", "--image-size", "64", "--data", "synthetic:60", "--threads", "1", "--out", "run",
                        "--overwrite", "--timeline", name, says=["--timeline " + name, "of its own"])
        self.write("mine.txt", "mine")
        self.expect(2, "train", "--image-size", "64", "--data", "synthetic:60", "--threads", "1", "--out", "other",
                    "--timeline", "mine.txt", says=["mine.txt", "is there already"])
        self.assertEqual(self.text_of("mine.txt"), "mine")
        self.expect(74, "train", "--image-size", "64", "--data", "synthetic:60", "--threads", "1", "--out", "third",
                    "--timeline", "nowhere/t.json", says=["nowhere/t.json"])

    def test_wrong_words(self):
        self.expect(2, "train", "--log-format", "mlperf,caffe", says=["--log-format", "caffe", "tf_cnn_benchmarks"])
        self.expect(2, "train", "--log-format", "dawnbench", says=["was removed; use metrics.jsonl"])
        for steps in (":5", ":0:3", ":7:5", ":1:2:3", ":1:99999999999999999999", ":a:b"):
            self.expect(2, "train", "--timeline", "t.json" + steps, says=[f"--timeline t.json{steps}:", "FIRST:LAST"])
        for more in ([], ["--dry-run"]):
            self.expect(2, "train", "--image-size", "64", "--data", "synthetic:60", "--threads", "1", "--steps", "3",
                        "--out", "run", "--timeline", "t.json:100:200", *more,
                        says=["--timeline t.json:100:200: the training has 3 steps", "name steps from 1 to 3"])
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
