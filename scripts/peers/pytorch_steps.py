"""Training steps of a network of cputrain in PyTorch: python pytorch_steps.py JOB.json (see job.py).

Maps and kernels lie channels-last or channels-first, whichever is quicker for the network.
"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch

import job as jobs
from pytorch_network import Network, Objective, count, load, optimizer_of


class Training:
    """A network with its batch of photographs in one of two layouts of memory."""

    def __init__(self, job, layout):
        graph, arrays = jobs.read_network(job["weights"])
        pixels, labels = jobs.read_images(job["images"], job["batch"])
        self.network = Network(graph)
        load(self.network, arrays)
        self.x, self.y = torch.tensor(pixels).permute(0, 3, 1, 2), torch.tensor(labels)
        if layout == "channels-last":
            self.network = self.network.to(memory_format=torch.channels_last)
        else:
            self.x = self.x.contiguous()
        self.objective = Objective(self.network, graph)
        self.optimizer = optimizer_of(job["optimizer"], self.network.parameters())

    def loss(self):
        return self.objective.loss(self.network(self.x), self.y)

    def evaluate(self):
        with torch.no_grad():
            self.network.eval()
            return self.loss().item()

    def steps(self, job):
        self.network.train()
        return jobs.timed_steps(job, self.step)

    def step(self):
        self.optimizer.zero_grad()
        value = self.loss()
        value.backward()
        self.optimizer.step()
        return value.item()


def check(job):
    """The loss before training, and the layout with the quickest of a few small steps of this network."""
    brief = dict(job, warm_up=1, steps=3, batch=min(job["batch"], 16))
    rates = {layout: max(Training(brief, layout).steps(brief)) for layout in ("channels-last", "channels-first")}
    return {"loss": Training(job, "channels-last").evaluate(),
            "settings": {"layout": max(rates, key=rates.get)}}


def main():
    job = jobs.read_job()
    torch.set_num_threads(job["threads"])
    at_start = jobs.peak_bytes()
    if job["check"]:
        network = Network(jobs.read_network(job["weights"])[0])
        return jobs.answer(version=torch.__version__, parameters=count(network), **check(job))
    rates = Training(job, job["settings"]["layout"]).steps(job)
    jobs.answer(images_per_second=rates, start_bytes=at_start)


main()
