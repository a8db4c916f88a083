"""Training steps of a network of cputrain in PyTorch: python pytorch_steps.py JOB.json (see job.py).

Options: `channels_last`, `compile` (torch.compile, with a C++ compiler), `mkldnn` (false: without oneDNN).
"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch

import job as jobs
from pytorch_network import Network, Objective, count, load, optimizer_of


class Training:
    """A network with its batch of photographs."""

    def __init__(self, job):
        graph, arrays = jobs.read_network(job)
        pixels, labels = jobs.read_images(job["images"], job["batch"])
        network = Network(graph)
        load(network, arrays)
        self.parameters = count(network)
        self.x, self.y = torch.tensor(pixels).permute(0, 3, 1, 2), torch.tensor(labels)
        if job["options"].get("channels_last"):
            network = network.to(memory_format=torch.channels_last)
        else:
            self.x = self.x.contiguous()
        self.objective = Objective(network, graph)
        self.optimizer = optimizer_of(job["optimizer"], network.parameters())
        network.train()
        self.network = torch.compile(network) if job["options"].get("compile") else network
        self.bf16 = job["precision"] == "bf16"

    def step(self):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            logits = self.network(self.x)
        value = self.objective.loss(logits.float(), self.y)
        value.backward()
        self.optimizer.step()
        return value.item()


def main():
    job = jobs.read_job()
    torch.set_num_threads(job["threads"])
    torch.backends.mkldnn.enabled = job["options"].get("mkldnn", True)
    at_start = jobs.peak_bytes()
    training = Training(job)
    jobs.answer(version=torch.__version__, parameters=training.parameters, start_bytes=at_start,
                **jobs.measured(job, training.step))


main()
