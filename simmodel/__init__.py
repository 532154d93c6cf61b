"""SimPy for computing systems: one vocabulary from an accelerator to a grid."""

__version__ = "0.1.0"
