"""Times Stable-Baselines3's DQN on our environment: IN OUT STEPS ENVS.

Runs in its own environment without importing our library. Uses the same network, replay
memory, batch size, target period, discount and learning rate, and one gradient step
after a step of all environments, as ours.
"""

import json
import sys
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

REWARDS = np.array([[10, -10, -30], [30, 10, -10], [-30, -10, 10]], np.float32)
FLOOR_W, LOG_SCALE = 0.2, 10.0
EPISODE, HIDDEN = 60, [100] * 8
WARM_UP = 400


class Switching(gymnasium.Env):
    """Minutes of a device, precomputed: a step looks up two tables."""

    def __init__(self, load, forecast, standby, on):
        watts = np.stack([forecast, load], axis=1)
        self.seen = np.float32(np.log1p(watts / FLOOR_W) / LOG_SCALE)
        low = standby / 2 if standby > 0 else FLOOR_W
        high = np.sqrt(standby * on) if standby > 0 else FLOOR_W
        self.mode = (load >= low).astype(int) + (load >= high)
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        """Starts at a random minute of the series."""
        super().reset(seed=seed)
        self.minute = int(self.np_random.integers(len(self.seen) - EPISODE))
        self.left = EPISODE
        return self.seen[self.minute], {}

    def step(self, action):
        """Takes a step with the rewards of table 2.1."""
        reward = float(REWARDS[self.mode[self.minute], action])
        self.minute += 1
        self.left -= 1
        return self.seen[self.minute], reward, self.left == 0, False, {}


def main():
    """Times steps after the first ones."""
    given = np.load(sys.argv[1])
    names = ("load", "forecast", "standby", "on")
    envs = int(sys.argv[4])
    torch.set_num_threads(1)  # The networks are too small for several cores.
    make = lambda: Switching(*(given[name] for name in names))
    env = DummyVecEnv([make] * envs)
    model = stable_baselines3.DQN(
        "MlpPolicy",
        env,
        learning_rate=1e-3,
        buffer_size=2000,
        learning_starts=32,
        batch_size=32,
        gamma=0.9,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=100 * envs,  # Counted in environment steps.
        exploration_initial_eps=0.1,
        exploration_final_eps=0.1,
        policy_kwargs={"net_arch": HIDDEN},
        device="cpu",
        seed=0,
    )
    model.learn(WARM_UP)
    steps = int(sys.argv[3])
    start = time.perf_counter()
    model.learn(steps, reset_num_timesteps=False)
    seconds = time.perf_counter() - start
    found = {
        "steps_per_second": steps / seconds,
        "threads": torch.get_num_threads(),
        "versions": f"{stable_baselines3.__version__}, torch {torch.__version__}",
    }
    with open(sys.argv[2], "w") as file:
        json.dump(found, file)
