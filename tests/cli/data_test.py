"""Data sets through the program: made-up folders, packed files, CIFAR, six-fold images, augmentation."""
import json
import os
import unittest

from program import ProgramTest, needs_mpi

FLAGS = ["--image-size", "48", "--batch", "10", "--threads", "1", "--seed", "3"]


class Data(ProgramTest):
    def synth(self, folder, images=40):
        self.expect(0, "data", "synth", folder, "--images", str(images), "--image-size", "48",
                    "--format", "png", says=["made-up images"])

    def losses(self, run, *words, **options):
        self.expect(0, *FLAGS, "--out", run, "--log-every", "1", *words, **options)
        return [s["loss"] for s in self.metrics(run, "step")]

    def test_a_packed_file_trains_to_the_same_losses_as_the_folder(self):
        self.synth("s")
        words = ["--epochs", "2", "--augment", "flip,rotate:10,zoom:0.1,colour:0.2"]
        folder = self.losses("a", "--data", "s", *words)
        self.expect(0, "data", "pack", "s", "s.ctpack", "--image-size", "48", "--seed", "3", "--resize", "bilinear-plain",
                    says=["40 images of 48x48"])
        self.assertEqual(folder, self.losses("b", "--data", "s.ctpack", *words))
        self.assertEqual(self.json_of("b/config.json")["augment"], "rotate:10,zoom:0.1,flip,colour:0.2")
        self.assertNotEqual(folder, self.losses("c", "--data", "s", "--epochs", "2"))

    @needs_mpi
    def test_augmented_and_expanded_curves_do_not_depend_on_ranks(self):
        self.synth("s")
        words = ["--data", "s", "--expand", "six", "--augment", "flip,shear:9,crop:3", "--steps", "4",
                 "--optimizer", "sgd", "--io-threads", "2"]
        alone = self.losses("1", *words)
        for ranks in (2, 3):
            together = self.losses(str(ranks), *words, ranks=ranks)
            self.assertEqual((len(alone), len(together)), (4, 4))
            for x, y in zip(alone, together):
                self.assertAlmostEqual(x, y, delta=1e-3 * x)

    def test_the_resize_is_kept_with_the_weights(self):
        self.synth("s", 20)
        self.losses("n", "--data", "s", "--steps", "4", "--resize", "nearest", "--image-size", "53")
        last = self.metrics("n", "epoch")[-1]
        done = self.expect(0, "eval", "--weights", "n/weights.safetensors", "--data", "s", "--json", "-")
        self.assertAlmostEqual(json.loads(done.stdout)["loss"], last["val_loss"],
                               delta=1e-5 * last["val_loss"])

    def test_six_fold_data(self):
        self.synth("s", 20)
        done = self.expect(0, "data", "info", "s", "--expand", "six", "--json", "-")
        info = json.loads(done.stdout)
        self.assertEqual((info["samples"], info["train"], info["validation"]), (120, 108, 12))
        done = self.expect(0, "data", "check", "s", "--expand", "six-leaky", "--json", "-",
                           says=["accuracy is too good"])
        self.assertGreater(len(json.loads(done.stdout)["in_training_and_validation"]), 0)

    def test_three_parts(self):
        for part, images in (("training", 12), ("valid", 6), ("testing", 4)):
            self.synth("d/" + part, images)
        done = self.expect(0, "data", "info", "d", "--json", "-")
        info = json.loads(done.stdout)
        self.assertEqual((info["train"], info["validation"], info["test"]), (12, 6, 4))
        self.assertEqual([(c["train"], c["validation"], c["test"]) for c in info["classes"]],
                         [(6, 3, 2), (6, 3, 2)])
        self.expect(0, "data", "info", "d",
                    says=["12 for training, 6 for validation (its 'valid' folder) and 4 for test "
                          "(its 'testing' folder)",
                          "6 for training, 3 for validation, 2 for test"])
        self.expect(0, *FLAGS, "--data", "d", "--steps", "1", "--out", "run", says=["4 for test"])
        self.synth("d/test", 4)
        self.expect(65, *FLAGS, "--data", "d", "--out", "no", says=["'test'", "'testing'", "rename"])

    def test_an_empty_class_ends_with_65_or_stays_a_class(self):
        self.synth("d", 20)
        self.expect(0, "data", "check", "d", says=["\nNothing is wrong\nLooked for and not found: damaged or empty images, ",
                                                   ", doubled images, ", ", classes without images, "])
        os.mkdir(self.path("d/third"))
        for n in range(3):
            self.write(f"d/third/{n}.svg", "x")
        words = [*FLAGS, "--data", "d", "--steps", "2"]
        for command in ([*words, "--out", "no"], ["data", "info", "d"]):
            self.expect(65, *command, says=["'third'", "SVG 3", "--allow-empty-classes"])
        self.expect(65, "data", "check", "d", says=["Not read, SVG: 3", "third/0.svg",
                                                    "Classes without an image that can be read: 1",
                                                    "\nFound: classes without images (1)"])
        self.expect(1, "data", "check", "d", "--allow-empty-classes", says=["3 of 23 files, more than a tenth"])
        for n in range(3):  # read by their names, and garbage
            os.rename(self.path(f"d/third/{n}.svg"), self.path(f"d/third/{n}.jfif"))
        self.expect(65, *words, "--out", "no", says=["'third'", "none of its 3 training images"])
        self.assertFalse(os.path.exists(self.path("no/weights.safetensors")))
        self.expect(0, *words, "--out", "run", "--allow-empty-classes",
                    says=["warning: no image can be read of class 'third'"])
        done = self.expect(0, "predict", "--weights", "run/weights.safetensors", "--json", "-", "d/large_spots/")
        answers = json.loads(done.stdout)["predictions"]
        self.assertEqual(sorted(answers[0]["probabilities"]), ["large_spots", "small_spots", "third"])
        done = self.expect(0, "eval", "--weights", "run/weights.safetensors", "--data", "d", "--allow-empty-classes",
                           "--json", "-")
        self.assertEqual(json.loads(done.stdout)["images"], 2)

    def test_files_that_are_not_read_are_told_by_kind(self):
        self.synth("d", 20)
        for name in ("README.md", "Thumbs.db", "d1/.DS_Store", "labels.csv", "notes.txt"):
            self.write(os.path.join("d/large_spots", os.path.basename(name)), "x")
        self.write("d/small_spots/1.cr2", "x")
        self.write("d/small_spots/2.mov", "x")
        kinds = "Not read: texts 3, RAW photograph (.cr2) 1, file of a system 1, video 1."
        self.expect(0, "data", "info", "d", says=[kinds])
        done = self.expect(0, "data", "check", "d", "--json", "check.json", says=[kinds])  # 2 of 22
        report = self.json_of("check.json")
        self.assertNotIn("more than a tenth", done.stdout + done.stderr)
        self.assertIn({"kind": "RAW photographs", "files": 1, "example": "small_spots/1.cr2"}, report["not_read_by_kind"])
        self.assertIn({"path": "small_spots/2.mov", "reason": "video"}, report["not_read"])
        self.write("d/small_spots/3.svg", "x")
        self.expect(1, "data", "check", "d", "--json", "-", says=["3 of 23 files, more than a tenth", "SVG 1", "convert"])
        self.expect(0, *FLAGS, "--data", "d", "--steps", "1", "--out", "run", says=["SVG 1"])
        self.write("d/small_spots/4.png", "x")  # a damaged one counts more
        self.expect(65, "data", "check", "d")

    def test_a_run_folder_in_the_data_leaves_it_readable(self):
        self.synth("d", 20)
        before = json.loads(self.expect(0, "data", "info", "d", "--json", "-").stdout)
        words = [*FLAGS, "--data", "d", "--steps", "1"]
        for out in ("d", "d/run", "d/runs/b"):
            self.expect(0, *words, "--out", out, "--overwrite")
        after = json.loads(self.expect(0, "data", "info", "d", "--json", "-").stdout)
        self.assertEqual(after["classes"], before["classes"])
        self.assertEqual(after["fingerprint"], before["fingerprint"])

    def test_one_file_under_two_labels_is_said(self):
        self.synth("d", 20)
        name = sorted(os.listdir(self.path("d/large_spots")))[0]
        os.link(self.path("d/large_spots", name), self.path("d/small_spots/other.png"))
        done = self.expect(0, *FLAGS, "--data", "d", "--steps", "1", "--out", "run")
        self.assertIn("warning: 1 file has two labels", done.stderr)
        self.assertIn("'large_spots'", done.stderr)
        self.expect(0, "data", "check", "d", says=["\nFound: doubled images (1)", "images under several labels (1)",
                                                   "\nLooked for and not found: damaged or empty images, "])
        report = json.loads(self.expect(0, "data", "check", "d", "--json", "-").stdout)
        self.assertEqual(report["under_several_labels"],
                         [[f"d/large_spots/{name} (large_spots)", "d/small_spots/other.png (small_spots)"]])
        self.write("l.csv", f'image,label\nd/large_spots/{name},a\n"d/small_spots/other.png", b\n')
        self.expect(0, "data", "info", "l.csv", says=["warning: 1 file has two labels"])

    def test_cifar(self):
        def records(count, seed):
            return b"".join(bytes([i % 10]) + bytes((i * 7 + k * seed) % 256 for k in range(3072))
                            for i in range(count))
        os.mkdir(self.path("c"))
        for name, count, seed in [("data_batch_2.bin", 40, 3), ("test_batch.bin", 20, 5)]:
            self.write(self.path("c", name), records(count, seed))
        done = self.expect(0, *FLAGS, "--data", "cifar10:c", "--steps", "2", "--out", "run",
                           says=["1 of the 5 training files", "20 for validation (its test file)"])
        self.assertIn("val_loss", done.stdout)
        done = self.expect(0, "data", "check", "cifar10:c", "--json", "-")
        self.assertFalse(json.loads(done.stdout)["known_files"][0]["as_published"])

    def test_annotations(self):
        self.synth("train_val_images", 20)
        names = sorted(os.path.join(place, name) for place, _, names in os.walk(self.path("train_val_images"))
                       for name in names)
        super_of = {"large_spots": "Aves", "small_spots": "Insecta"}
        data = {"images": [], "annotations": [], "categories": [
            {"id": n, "name": f"species {n}", "supercategory": s} for n, s in enumerate(super_of.values())]}
        for n, name in enumerate(names):
            kind = list(super_of).index(os.path.basename(os.path.dirname(name)))
            data["images"].append({"id": n, "file_name": os.path.relpath(name, self.folder)})
            data["annotations"].append({"id": n, "image_id": n, "category_id": kind})
        self.write("train2017.json", data)
        done = self.expect(0, "data", "info", "inat:.", "--balanced", "--limit-train", "6", "--json", "-")
        info = json.loads(done.stdout)
        self.assertEqual([(c["name"], c["train"]) for c in info["classes"]], [("Aves", 3), ("Insecta", 3)])


if __name__ == "__main__":
    unittest.main()
