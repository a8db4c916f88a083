"""What a pack holds: networks with all tiles and kernels, launches for ncu, predictions, images; and its size."""
import glob
import json
import os
import re
import shutil
import unittest
from unittest import mock

from gpu_day_folder import ROOT, why_no_pack
from program import PROGRAM, ProgramTest
import expected
import launches
import libraries
import networks
import pack
import plan
import profile_steps
import profiles
import sanitizer_steps

EMULATED = os.path.join(os.path.dirname(PROGRAM), "libcputrain_cuda_emulated.so")
KERNELS = os.path.join(ROOT, "backends", "cuda", "kernels")
MULTIPROCESSORS = {"A100": 108, "H100": 132}
# Kernels that neither network launches in a training of one rank, and what does.
ELSEWHERE = {
    "change_gradients": "clipping", "merge_moments": "--sync-bn", "merge_slopes": "--sync-bn", "multiply_adds": "bench",
    "narrow_gradients": "--compress with NCCL", "widen_gradients": "--compress with NCCL", "sum_arrays": "NCCL",
    "triad": "bench", "use_moving_statistics": "validation", "write_segment_facts": "LARS, LAMB"}


def counted(test, *words):
    """What a training asks of the emulated device, which skips its kernels."""
    if not os.path.exists(EMULATED):
        test.skipTest("this build has no emulated device")
    plugins, file = test.path("plugins"), test.path("counts.json")
    os.makedirs(plugins, exist_ok=True)
    shutil.copy(EMULATED, os.path.join(plugins, "libcputrain_cuda.so"))
    test.expect(0, "train", *words, "--backend", "cuda", "--limit-val", "0", "--overwrite", "--out", "run",
                CPUTRAIN_PLUGINS=plugins, CPUTRAIN_EMULATED_KERNELS="skip", CPUTRAIN_EMULATED_COUNTS=file)
    with open(file) as counts:
        return json.load(counts)


class All(launches.Network):
    """With layers whose speed is not predicted, so that what follows them is planned, too."""

    def silu(self, layer):
        self.copy_of_shared(layer)

    def layer_norm(self, layer):
        self.learns = True

    def concat(self, layer):
        first = self.made[layer["from"][0]][0]
        self.map = launches.Map(first.height, first.width, launches.stored(layer["output"]).channels)

    def product(self, layer, src, dst, *rest):
        if layer.get("groups", 1) == 1:
            super().product(layer, src, dst, *rest)
        else:
            self.map = dst


class Networks(ProgramTest):
    def planned(self, network, multiprocessors):
        self.write("net.json", network)
        layers = expected.described(PROGRAM, self.path("net.json"))["layers"]
        with mock.patch.object(launches, "LAYERS", (*launches.LAYERS, "silu", "layer_norm", "concat")):
            return All(layers, network["recipe"]["batch"], "bf16", multiprocessors)

    def test_they_have_each_tile_in_each_direction(self):
        wanted = {(problem, tile) for problem in ("Forward", "BackwardData", "BackwardWeights") for tile in plan.TILES}
        wanted.remove(("BackwardWeights", "256x64"))  # which the plan never takes there
        for gpu, multiprocessors in MULTIPROCESSORS.items():
            found = {}
            for network in (networks.SMALL, networks.LARGE):
                for launch in profiles.in_order(self.planned(network, multiprocessors)):
                    if launch.plan:
                        steps = found.get((launch.kernel, launch.plan.tile), 0)
                        found[launch.kernel, launch.plan.tile] = max(steps, launch.plan.steps)
            self.assertEqual(set(found), wanted, gpu)
            for (problem, tile), steps in found.items():
                if tile in ("128x64", "128x128", "256x64"):
                    self.assertGreater(steps, 2, f"{problem} {tile}: its loop goes round the stages of shared memory")

    def test_they_launch_every_kernel_of_a_training(self):
        launched = set()
        for name, network in (("small", networks.SMALL), ("large", networks.LARGE)):
            self.write(f"{name}.json", network)
            counts = counted(self, "--model", f"{name}.json", "--data", "synthetic:40", "--batch", "4", "--precision",
                             "bf16", "--steps", str(sanitizer_steps.STEPS))
            launched |= set(counts["kernels"])
            self.assertGreater(counts["graphs"], 0)
        known = set()
        for path in glob.glob(os.path.join(KERNELS, "**", "*.cu"), recursive=True):
            with open(path) as file:
                known |= set(re.findall(r'launch\w*(?:<[^>]*>)?\(\s*stream,\s*"(\w+)"', file.read()))
        self.assertGreater(len(known), 40)
        self.assertEqual(known - launched, set(ELSEWHERE))


@unittest.skipIf(why_no_pack(PROGRAM), why_no_pack(PROGRAM))
class Size(ProgramTest):
    def test_a_pack_may_travel(self):
        """Beside images and results, which nobody can compress, as many as these can be."""
        for folder in ("bundle", "pack"):
            os.makedirs(self.path(folder))
        _, missing = pack.fill_programs(self.path("bundle"), os.path.dirname(PROGRAM))
        if missing:
            self.skipTest(f"this build has not made {', '.join(missing)}")
        pack.bundle(self.path("bundle"), self.path("pack", "bundle.tar.xz"))
        pack.copy_scripts(self.path("pack"))
        self.assertLess(pack.size_of(self.path("pack")) + expected.MOST_BYTES, pack.MOST_BYTES)


class Launches(ProgramTest):
    def seen(self, name):
        """(by GPU: to skip, families)"""
        profile = profiles.PROFILES[name]
        model = expected.described(PROGRAM, profile.model, "--image-size", str(profile.size))
        return profiles.foreseen(profile, model)

    def test_ncu_sees_each_tile_of_dogcat_and_its_pools(self):
        tiles, pools = {"128x32", "64x64", "128x128", "256x64"}, ["max_pool_backward_windows", "max_pool_forward"]
        block = ["first_block_backward_weights", "first_block_forward"]
        for name in ("dogcat bf16", "dogcat tf32"):
            families = self.seen(name)["families"]["H100"]
            self.assertEqual({family.split()[-1] for family in families if "gemm" in family}, tiles)
            self.assertEqual([family for family in families if "gemm" not in family], [*block, *pools])

    def test_launches_to_skip_are_those_of_the_program(self):
        """Both steps have as many, so the window lies around the end of the first."""
        for name in ("dogcat bf16", "resnet50v2 bf16"):
            foreseen, profile = self.seen(name), profiles.PROFILES[name]
            counts = counted(self, *foreseen["words"], "--steps", str(profile_steps.STEPS), "--no-graph")
            found = sum(of["launches"] for kernel, of in counts["kernels"].items()
                        if re.search(profile.kernels, kernel.replace("convolution", "gemm")))
            self.assertEqual(found, profile_steps.STEPS * (foreseen["skip"]["H100"] + profile.before), name)
            self.assertEqual(counts["graphs"], 0)

    def test_the_window_lies_where_one_step_ends_and_the_next_begins(self):
        # Kernels of a step: the first block, 6 products and 3 pools forward; the first block, 6 of weights, 6 of data
        # and 3 pools backward.
        foreseen = self.seen("dogcat bf16")
        profile = profiles.PROFILES["dogcat bf16"]
        self.assertEqual(foreseen["skip"], {gpu: 26 - profile.before for gpu in foreseen["skip"]})
        self.assertEqual(foreseen["count"], profile.before + profile.after)
        self.assertEqual(foreseen["words"][:4], ["--model", "dogcat", "--image-size", "256"])


class Cifar(ProgramTest):
    def images(self, train, val):
        os.mkdir(self.path("cifar"))
        for name, images in (("data_batch_1.bin", train), ("test_batch.bin", val)):
            with open(self.path("cifar", name), "wb") as file:
                for number in range(images):
                    file.write(bytes([number % 10]) + bytes(expected.CIFAR_RECORD - 1))
        return self.path("cifar")

    def test_the_first_images_are_packed_and_read(self):
        with mock.patch.dict(expected.CIFAR, {"train": 60, "val": 20}):
            about = expected.pack_cifar(self.images(70, 30), self.path("pack"))
        said = self.expect(0, "data", "check", "cifar10:" + self.path("pack", "cifar10")).stdout
        self.assertIn("60", said)
        words = [*about["words"], "--epochs", "1", "--image-size", "32", "--batch", "20", "--dry-run"]
        self.expect(0, "train", "--data", "cifar10:" + self.path("pack", "cifar10"), *words)

    def test_too_few_images_are_refused(self):
        with self.assertRaisesRegex(libraries.Missing, "test_batch.bin is not there or has fewer than 500 images"):
            expected.check_cifar(self.images(expected.CIFAR["train"], 499))


if __name__ == "__main__":
    unittest.main()
