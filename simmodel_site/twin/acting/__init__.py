"""The acting half of the twin: decisions that reach a scheduler, within limits, or not at all."""
