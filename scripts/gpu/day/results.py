"""What a day found out, and the files that say so."""
import json
import os
import re

OK, FAILED, SKIPPED, NOT_RUN = "ok", "failed", "skipped", "not run"


class Failed(Exception):
    """A step found something wrong: its message is one line."""


class Cut(Failed):
    """Its time was over before it was known whether something is wrong."""


class Skipped(Exception):
    """A step cannot be made here: why."""


class Stopped(BaseException):
    """The day was asked to end."""


class Refused(Exception):
    """No day can be made here: the exit code and why."""

    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


class Result:
    def __init__(self, name, outcome, seconds, text):
        self.name, self.outcome, self.seconds, self.text = name, outcome, seconds, " ".join(str(text).split())

    def json(self):
        return {"name": self.name, "outcome": self.outcome, "seconds": round(self.seconds, 2), "text": self.text}


class Results:
    """Keeps everything and writes it after each step, since the machine may be taken away at any time."""

    def __init__(self, out):
        self.out, self.head, self.steps, self.figures, self.facts = out, {}, [], [], {}

    def path(self, name):
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            raise ValueError(name)
        return os.path.join(self.out, name)

    def add(self, result):
        self.steps.append(result)
        self.write()

    def figure(self, what, unit, measured, predicted=None):
        """A row of the table: a measurement beside its prediction, where there is one."""
        self.figures.append({"what": what, "unit": unit, "predicted": predicted, "measured": measured,
                             "ratio": measured / predicted if predicted and measured is not None else None})

    def failed(self):
        return [step.name for step in self.steps if step.outcome == FAILED]

    def json(self):
        return {**self.head, "steps": [step.json() for step in self.steps], "figures": self.figures,
                "facts": self.facts}

    def write(self):
        self.write_json("day.json", self.json())

    def write_json(self, name, value):
        path = self.path(name)
        with open(path + ".tmp", "w") as file:
            json.dump(value, file, indent=1)
            file.write("\n")
        os.replace(path + ".tmp", path)
