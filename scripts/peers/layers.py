"""Layers as cputrain's model files have them, for the translations to other frameworks."""
import sys


def inputs_of(layer, previous):
    """Names of the layers that this one reads: the one before it, unless it says otherwise."""
    return layer.get("from", [previous])


def not_translated(layer):
    sys.exit(f"layer {layer['name']}: {layer} is not translated for this framework")


def with_units(model):
    """The layers of a model file, where a dense layer may have as many units as there are classes."""
    return [{**layer, "units": model["recipe"]["classes"]} if layer.get("units") == "classes" else layer
            for layer in model["layers"]]
