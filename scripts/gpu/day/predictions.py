"""What scripts/predict_gpu foresaw for a GPU like this one."""

DOGCAT = ("dogcat", 256)  # model and image size


def words_of(network):
    """A network that is measured, as words of the program: with as many classes as it has by itself, which is what was
    foreseen, though the images have two."""
    model, size = network
    return ["--model", model, "--image-size", str(size), *(["--classes", "1000"] if model != "dogcat" else [])]


def of_gpu(predictions, device, precision, batch=None, network=DOGCAT):
    """Predictions for a GPU whose name ("H100") is a part of the device's ("NVIDIA H100 80GB HBM3")."""
    for one in (predictions or {}).get("predictions", []):
        if (one["gpu"].lower() in device.lower() and one["precision"] == precision and batch in (None, one["batch"])
                and (one["model"], one["image"][0]) == network):
            yield one


def images_per_second(predictions, device, precision, batch, network=DOGCAT):
    found = of_gpu(predictions, device, precision, batch, network)
    return next((one["images_per_second"] for one in found), None)


def microseconds(predictions, device, precision, batch, layer, direction, network=DOGCAT):
    """Per image; layer and direction are called as by cputrain bench. None where nothing was foreseen."""
    direction = direction.removeprefix("backward_")
    for one in of_gpu(predictions, device, precision, batch, network):
        for row in one["layers"]:
            if row["name"] == layer and row["direction"] == direction:
                return row["seconds"] * 1e6 / one["batch"]
    return None


def launches(predictions, device, precision, batch, network=DOGCAT):
    """What each launch of a micro-batch has to do, so that later models can be held against the day."""
    return next((one["launches"] for one in of_gpu(predictions, device, precision, batch, network)), None)
