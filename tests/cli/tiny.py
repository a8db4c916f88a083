"""Trainings that take no time, and weight files that a test changes."""
import json
import os
import struct

from formats import read_arrays, write_arrays
from images import made_pixels, write_bmp
from program import ProgramTest

TINY = {"format": "cputrain model 1", "name": "tiny",
        "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
        "layers": [{"type": "convolution", "filters": 4, "kernel": 3}, {"type": "relu"},
                   {"type": "global_average_pool"},
                   {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]}


class TinyTest(ProgramTest):
    """Networks that train in no time, on folders of made images."""

    def setUp(self):
        super().setUp()
        self.write("tiny.json", TINY)

    def make(self, folder, numbers=None, others=0, **classes):
        """A folder with so many images of each class, or those of these numbers; the same name, the same images, but
        for `others`, which has other ones."""
        for name, count in classes.items():
            os.makedirs(self.path(folder, name), exist_ok=True)
            for i in numbers or range(count):
                write_bmp(self.path(folder, name, f"{i}.bmp"), made_pixels(sum(name.encode()) + i + others, 20))

    def tiny(self, code, out, data, *words, says=(), **options):
        return self.expect(code, "--model", "tiny.json", "--data", data, "--threads", "1", "--out", out,
                           "--overwrite", *words, says=says, **options)

    def evaluate(self, data, *words, run="run", says=(), **options):
        done = self.expect(0, "eval", "--weights", f"{run}/weights.safetensors", "--data", data, "--threads",
                           "1", "--json", "-", *words, says=says, **options)
        return json.loads(done.stdout)

    def change_weights(self, run, change):
        """Writes the file anew after `change(metadata, {tensor: [floats]})`."""
        path = self.path(run, "weights.safetensors")
        metadata, arrays = read_arrays(path)
        tensors = {name: list(struct.unpack(f"<{len(data) // 4}f", data)) for name, (*_, data) in arrays.items()}
        change(metadata, tensors)
        write_arrays(path, {name: (*arrays[name][:2], struct.pack(f"<{len(values)}f", *values))
                            for name, values in tensors.items()}, metadata)
