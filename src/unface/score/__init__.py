"""Scores to rates: thresholds that keep their noise, rates with their people, and the worst case chosen elsewhere."""

from unface.score.verify import Draws, Mated, Measured, Threshold, effective_people, rate_at, thresholds, worst

__all__ = ["Draws", "Mated", "Measured", "Threshold", "effective_people", "rate_at", "thresholds", "worst"]
