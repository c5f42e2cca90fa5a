"""Replay: a change tried on cases of the log before it goes live. Tools answer as they were recorded, and nothing else does."""

from flows.replay.trial import replay_correction, replay_waiting, tried

__all__ = ["replay_correction", "replay_waiting", "tried"]
