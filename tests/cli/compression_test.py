"""Gradients that travel compressed: every method still learns, and the benchmark says when one pays."""
import unittest

from program import ProgramTest, needs_mpi

LEARN = ["--model", "dogcat", "--image-size", "64", "--data", "synthetic:240", "--limit-val", "0", "--batch", "12",
         "--epochs", "6", "--optimizer", "sgd:momentum=0.9", "--lr", "0.02", "--seed", "3",
         "--threads", "1"]


@needs_mpi
class Compression(ProgramTest):
    plain = None

    def losses(self, method):
        self.expect(0, "train", *LEARN, "--compress", method, "--out", method, ranks=2,
                    says=[] if method == "none" else [f"gradients as {method}", "fewer bytes", "costs more"])
        return [m["loss"] for m in self.metrics(method, "epoch")]

    def expect_to_learn(self, method):
        """At least 0.6 of the fall of the loss without compression, on another way."""
        Compression.plain = Compression.plain or self.losses("none")
        plain, losses = Compression.plain, self.losses(method)
        self.assertGreater(plain[0] - plain[-1], 0.1, plain)
        self.assertGreaterEqual(losses[0] - losses[-1], 0.6 * (plain[0] - plain[-1]), f"{losses}, plain {plain}")
        self.assertNotEqual(losses, plain)

    def test_fp16_learns(self):
        self.expect_to_learn("fp16")

    def test_bf16_learns(self):
        self.expect_to_learn("bf16")

    def test_topk_learns(self):
        self.expect_to_learn("topk")

    def test_powersgd_learns(self):
        self.expect_to_learn("powersgd")

    def test_benchmark_prints_where_each_pays(self):
        count = 1 << 20
        self.expect(0, "bench", "allreduce", "--bytes", str(count), "--json", "result.json", "--threads", "1", ranks=2,
                    says=["pays below, Gbit/s"])
        figures = {c["name"]: c for c in self.json_of("result.json")["compression"]}
        elements = count // 4
        ratios = {"fp16": 2, "bf16": 2, "topk:0.01": elements / (-(-elements // 100) * 2),
                  "powersgd:4": elements / (4 * (elements // 512 + 512))}
        self.assertEqual(set(figures), set(ratios))
        for name, c in figures.items():
            self.assertAlmostEqual(c["ratio"], ratios[name], places=6)
            longer = c["seconds_compute"] - c["seconds_plain"]
            if longer <= 0:
                self.assertEqual(c["breakeven_gbit_s"], "any")
                continue
            expected = (1 - 1 / c["ratio"]) * count / longer * 8e-9  # 2 (P - 1) / P = 1
            self.assertAlmostEqual(c["breakeven_gbit_s"] / expected, 1, places=6)


class Usage(ProgramTest):
    def test_unknown_methods(self):
        for method in ("zip", "topk:2", "powersgd:0", "fp16:1"):
            self.expect(2, "train", "--compress", method, says=[f"--compress {method}", "powersgd[:RANK]"])

    def test_nothing_to_compress(self):
        for allreduce in ("shm", "ps"):
            self.expect(2, "train", "--compress", "bf16", "--allreduce", allreduce,
                        says=["--compress bf16", f"--allreduce {allreduce}"])


if __name__ == "__main__":
    unittest.main()
