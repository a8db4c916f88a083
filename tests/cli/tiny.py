"""Trainings that take no time, and weight files that a test changes."""
import json
import os
import struct

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
        with open(self.path("tiny.json"), "w") as f:
            json.dump(TINY, f)

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
        with open(self.path(run, "weights.safetensors"), "rb") as f:
            data = f.read()
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        metadata, tensors = header.pop("__metadata__"), {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            tensors[name] = list(struct.unpack(f"<{(end - begin) // 4}f", data[start + begin:start + end]))
        change(metadata, tensors)
        body = b""
        for name, values in tensors.items():
            header[name]["data_offsets"] = [len(body), len(body) + 4 * len(values)]
            body += struct.pack(f"<{len(values)}f", *values)
        text = json.dumps({"__metadata__": metadata, **header}).encode()
        text += b" " * (-len(text) % 8)
        with open(self.path(run, "weights.safetensors"), "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text + body)
