"""Evidence features: one function a feature, from a cluster's material to a number, or None where it was not measured."""
