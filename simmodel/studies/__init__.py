"""The experiments of published papers."""
