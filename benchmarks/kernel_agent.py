"""A small network in numpy that learns to schedule by PPO: what the notebook and ``benchmarks/learned.py`` train.

The network is the kernel network of RLScheduler (Zhang et al., SC 2020): one small perceptron scores each row, that is
a waiting job or a place, from its columns and a few figures of the whole; a softmax over the scores of the allowed rows
is the policy. The clipped objective is that of PPO (Schulman et al., arXiv:1707.06347). There is no critic: several
episodes with the same jobs are each other's baseline (Mao et al., "Variance reduction for reinforcement learning in
input-driven environments", ICLR 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from time import process_time
from typing import NamedTuple

import numpy as np

HIDDEN = (32, 16)


def rows_of(observation: dict[str, np.ndarray], actions: int) -> np.ndarray:
    """Return one row for each action: the columns of a job or place and figures of the whole, beside an action to wait.

    Of a cluster these are the free share, the number of waiting jobs, and the reservation if there is one.
    """
    if "jobs" in observation:
        items, cluster = observation["jobs"], observation["cluster"]
        whole = np.concatenate([cluster[:2], cluster[18:]])
    else:
        items, whole = observation["places"], observation["job"]
    rows = np.zeros((actions, items.shape[1] + len(whole)), dtype=np.float32)
    rows[: len(items), : items.shape[1]] = items
    rows[:, items.shape[1] :] = whole
    return rows


class Network:
    """Scores rows by two hidden layers; a function of an observation and a mask, as ``agent_policy`` takes it."""

    def __init__(self, weights: Sequence[np.ndarray]) -> None:
        self.weights = [np.asarray(each, dtype=np.float32) for each in weights]

    @classmethod
    def drawn(cls, inputs: int, rng: np.random.Generator) -> Network:
        """Return a network of random weights, which prefers no row."""
        sizes = (inputs, *HIDDEN, 1)
        weights = []
        for n, m in pairwise(sizes):
            weights += [rng.normal(0.0, (2 / n) ** 0.5 if m > 1 else 1e-3, (n, m)), np.zeros(m)]
        return cls(weights)

    def layers(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the rows, the hidden layers and the scores."""
        found = [rows]
        for w, b in zip(self.weights[::2], self.weights[1::2], strict=True):
            found.append(found[-1] @ w + b)
            if w.shape[1] > 1:
                np.maximum(found[-1], 0.0, out=found[-1])
        return found

    def gradient(self, layers: list[np.ndarray], scores: np.ndarray) -> list[np.ndarray]:
        """Return the gradient of the weights, from that of the scores."""
        found: list[np.ndarray] = []
        back = scores[:, None]
        for i in range(len(layers) - 2, -1, -1):
            found = [layers[i].T @ back, back.sum(axis=0), *found]
            if i:
                back = (back @ self.weights[2 * i].T) * (layers[i] > 0)
        return found

    def __call__(self, observation: dict[str, np.ndarray], mask: np.ndarray) -> int:
        """Return the allowed action with the highest score."""
        allowed = np.flatnonzero(mask)
        if len(allowed) == 1:
            return int(allowed[0])
        scores = self.layers(rows_of(observation, len(mask))[allowed])[-1][:, 0]
        return int(allowed[scores.argmax()])


def probabilities(scores: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Return the softmax over the allowed rows of each decision; ``scores`` are those of the allowed rows, in a row."""
    found = np.full(masks.shape, -np.inf, dtype=np.float32)
    found[masks] = scores
    found = np.exp(found - found.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


class Decisions(NamedTuple):
    """The decisions of some episodes, and how much better than its like each went on."""

    rows: np.ndarray
    masks: np.ndarray
    actions: np.ndarray
    chances: np.ndarray
    advantages: np.ndarray


def play(network: Network, envs: list, seed: int, alike: int, rng: np.random.Generator) -> tuple[Decisions, float]:
    """Play one episode in each environment, ``alike`` neighbours of which have the same jobs; also the mean return."""
    actions = int(envs[0].action_space.n)
    told = [env.reset(seed=seed + i // alike) for i, env in enumerate(envs)]
    seen, masks = [each for each, _ in told], [info["action_mask"] for _, info in told]
    going, taken = list(range(len(envs))), [[] for _ in envs]
    rewards, times = [[] for _ in envs], [[0.0] for _ in envs]
    while going:
        allowed = np.array([masks[i] for i in going])
        rows = np.array([rows_of(seen[i], actions) for i in going])
        chances = probabilities(network.layers(rows[allowed])[-1][:, 0], allowed)
        sums = chances.cumsum(axis=1)
        drawn = (sums > rng.random((len(going), 1)) * sums[:, -1:]).argmax(axis=1)
        left = []
        for n, (i, action) in enumerate(zip(going, drawn.tolist(), strict=True)):
            taken[i].append((rows[n], allowed[n], action, chances[n, action]))
            seen[i], reward, terminated, truncated, info = envs[i].step(action)
            rewards[i].append(reward)
            times[i].append(times[i][-1] + info["seconds"])
            if not (terminated or truncated):
                masks[i] = info["action_mask"]
                left.append(i)
        going = left
    advantages = np.concatenate(_advantages(rewards, times, alike))
    columns = [np.array(each) for each in zip(*(each for episode in taken for each in episode), strict=True)]
    total = float(np.mean([sum(each) for each in rewards]))
    return Decisions(*columns, advantages / (advantages.std() + 1e-8)), total


def _advantages(rewards: list[list[float]], times: list[list[float]], alike: int) -> list[np.ndarray]:
    """Return the rewards still to come less those of the others with the same jobs at the same time."""
    found = []
    to_come = [np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in rewards]
    for first in range(0, len(rewards), alike):
        group = range(first, first + alike)
        scale = np.std([to_come[i][0] for i in group]) + 1e-8
        for i in group:
            at = np.array(times[i][:-1])
            others = [to_come[j][np.searchsorted(times[j], at).clip(max=len(rewards[j]))] for j in group if j != i]
            found.append((to_come[i][:-1] - np.mean(others, axis=0)) / scale)
    return found


def improve(network: Network, moments: list, done: Decisions, rate: float, rng: np.random.Generator) -> None:
    """Improve a network by the clipped objective with an entropy bonus, in steps of Adam, whose moments are kept."""
    for _ in range(3):
        for part in np.array_split(rng.permutation(len(done.actions)), max(1, len(done.actions) // 512)):
            masks, actions, better, n = done.masks[part], done.actions[part], done.advantages[part], len(part)
            layers = network.layers(done.rows[part][masks])
            chances = probabilities(layers[-1][:, 0], masks)
            ratio = chances[np.arange(n), actions] / done.chances[part]
            gain = np.where(np.where(better > 0, ratio < 1.2, ratio > 0.8), ratio * better, 0.0)
            back = -chances * gain[:, None]
            back[np.arange(n), actions] += gain
            logs = np.log(np.where(chances > 0, chances, 1.0))
            back -= 0.003 * chances * (logs - (chances * logs).sum(axis=1, keepdims=True))
            steps = network.gradient(layers, back[masks].astype(np.float32) / n)
            moments[:] = moments or [1, *([np.zeros_like(w), np.zeros_like(w)] for w in network.weights)]
            for weight, step, pair in zip(network.weights, steps, moments[1:], strict=True):
                pair[0] = 0.9 * pair[0] + 0.1 * step
                pair[1] = 0.999 * pair[1] + 0.001 * step**2
                unbiased = pair[0] / (1 - 0.9 ** moments[0]), pair[1] / (1 - 0.999 ** moments[0])
                weight += rate * unbiased[0] / (unbiased[1] ** 0.5 + 1e-8)
            moments[0] += 1


class Learned(NamedTuple):
    """The network that was best on the validation part, and how it came about: (steps, CPU s, mean return, value)."""

    network: Network
    value: float
    history: list[tuple[int, float, float, float]]


def learn(
    make: Callable[[], object],
    valid: Callable[[Network], float],
    *,
    seed: int,
    rounds: int = 10,
    every: int = 2,
    groups: int = 8,
    alike: int = 8,
    rate: float = 7e-4,
    average: float = 0.0,
) -> Learned:
    """Train a network in what ``make`` returns; ``valid`` values the mean of its weights over rounds: low is good."""
    rng, begin = np.random.default_rng(seed), process_time()
    envs = [make() for _ in range(groups * alike)]
    inputs = rows_of(envs[0].observation_space.sample(), 1 + int(envs[0].action_space.n)).shape[1]
    network, moments, history, steps = Network.drawn(inputs, rng), [], [], 0
    best, kept = (np.inf, network), network
    for number in range(1, rounds + 1):
        done, mean = play(network, envs, int(rng.integers(2**30)), alike, rng)
        improve(network, moments, done, rate * (1 - (number - 1) / rounds), rng)
        steps += len(done.actions)
        kept = Network([average * a + (1 - average) * w for a, w in zip(kept.weights, network.weights, strict=True)])
        value = valid(kept) if number % every == 0 or number == rounds else np.nan
        if value < best[0]:
            best = value, kept
        history.append((steps, process_time() - begin, mean, value))
    return Learned(best[1], float(best[0]), history)
