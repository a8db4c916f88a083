"""What scripts/predict_gpu foresaw for a GPU like this one."""


def of_gpu(predictions, device, precision, batch=None):
    """Predictions for a GPU whose name ("H100") is a part of the device's ("NVIDIA H100 80GB HBM3")."""
    for one in (predictions or {}).get("predictions", []):
        if one["gpu"].lower() in device.lower() and one["precision"] == precision and batch in (None, one["batch"]):
            yield one


def images_per_second(predictions, device, precision, batch):
    return next((one["images_per_second"] for one in of_gpu(predictions, device, precision, batch)), None)


def microseconds(predictions, device, precision, batch, layer, direction):
    """Per image; layer and direction are called as by cputrain bench. None where nothing was foreseen."""
    direction = direction.removeprefix("backward_")
    for one in of_gpu(predictions, device, precision, batch):
        for row in one["layers"]:
            if row["name"] == layer and row["direction"] == direction:
                return row["seconds"] * 1e6 / one["batch"]
    return None


def launches(predictions, device, precision, batch):
    """What each launch of a micro-batch has to do, so that later models can be held against the day."""
    return next((one["launches"] for one in of_gpu(predictions, device, precision, batch)), None)
