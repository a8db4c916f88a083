"""Fills what older tables of results did not record, with what stands beside them, and says where it is from.

scripts/tables recorded results writes results/*/cells.json: family and model of the processor as the folder's README.md
states them, caches of its environment.json, and the version of the kernels by the sources of the table's commit. What
is there already stays, and what is nowhere is left out. Days with a GPU have theirs from scripts/gpu_day collect.
"""
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import origin

PROCESSOR = re.compile(r"\(family (\d+), model (\d+)")


def processor_of(folder):
    """cpu_id by the folder's page; None where that does not state it."""
    path = os.path.join(folder, "README.md")
    with open(path) as file:
        stated = PROCESSOR.search(file.read())
    if not stated:
        return None
    found = {"vendor": "", "family": int(stated[1]), "cpu_model": int(stated[2]), "stepping": None, "instructions": []}
    environment = os.path.join(folder, "environment.json")
    if os.path.exists(environment):
        with open(environment) as file:
            machine = json.load(file)["machine"]
        found.update(cores=machine["cores"], caches=machine["caches"])
    return {**found, "taken_from": os.path.relpath(path, origin.ROOT)}


def fill(table, folder, kernels):
    """The table with what it lacks; `kernels`: {backend: version} of its commit."""
    processor = table["machine"].get("cpu_id") or processor_of(folder)
    if processor:
        table["machine"].setdefault("cpu_id", processor)
    measured = [cell for cell in table["cells"] if cell["seconds_per_epoch"]]
    for cell in measured:
        if processor:
            cell.setdefault("cpu_id", processor)
        if cell["backend"] in kernels:
            cell.setdefault("kernels_version", kernels[cell["backend"]])
        if table.get("commit"):
            cell.setdefault("commit", table["commit"])
    if all("--settled-steps" in cell["command"] and "--weights" not in cell["command"] for cell in measured):
        table.setdefault("weights", "first steps of a training")
    return table


def main():
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*", "cells.json"))):
        with open(path) as file:
            table = json.load(file)
        if table["machine"].get("platform") or "gpu_day" in table["command"]:  # a simulation's, or of a day
            continue
        fill(table, os.path.dirname(path), origin.versions_of(origin.commit_in(table.get("commit", ""))))
        with open(path, "w") as file:
            file.write(json.dumps(table, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
