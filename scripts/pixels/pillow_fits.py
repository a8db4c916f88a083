"""The ways of --resize and --fit, put together from Pillow's calls."""
import math

from PIL import Image, ImageOps

WAYS = {"area": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST}


def cropped(image, size, way, part):
    """torchvision's Resize and CenterCrop, with their rounding; the part as timm's crop_pct."""
    side = math.floor(size / part)
    longer = int(side * max(image.size) / min(image.size))
    width, height = (side, longer) if image.width <= image.height else (longer, side)
    left, top = int(round((width - size) / 2.0)), int(round((height - size) / 2.0))
    return image.resize((width, height), way).crop((left, top, left + size, top + size))


def fitted(image, height, width, way, fit):
    """Crops are square."""
    if fit == "stretch":
        return image.resize((width, height), way)
    if fit == "pad":
        return ImageOps.pad(image, (width, height), way)
    return cropped(image, width, way, float(fit.partition(":")[2] or 1))
