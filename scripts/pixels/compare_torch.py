"""Packed photographs beside PyTorch's interpolate with antialias, which is torchvision's resize of tensors.

Usage: compare_torch.py FOLDER, which compare.py has filled."""
import os
import sys

import numpy as np
import torch
from packed import read_packed

WORK = sys.argv[1]
photographs = np.load(os.path.join(WORK, "photographs.npz"))
failed = False
for way in ("bilinear", "bicubic"):
    for size in (64, 224):
        names, (height, width), pixels = read_packed(os.path.join(WORK, f"{way}-stretch-{size}.ctpack"))
        ours = np.frombuffer(pixels, np.uint8).reshape(len(names), height, width, 3).astype(int)
        worst = 0
        for i in range(len(photographs)):
            image = torch.from_numpy(photographs[str(i)]).permute(2, 0, 1)[None]
            theirs = torch.nn.functional.interpolate(image, (size, size), mode=way, align_corners=False, antialias=True)
            worst = max(worst, int(np.abs(theirs[0].permute(1, 2, 0).numpy().astype(int) - ours[i]).max()))
        print(f"{way:10} {size:4}  PyTorch {torch.__version__}, bytes: {worst} steps of 255 at most")
        failed = failed or worst > 1
sys.exit("check_pixels: more than one step from PyTorch" if failed else 0)
