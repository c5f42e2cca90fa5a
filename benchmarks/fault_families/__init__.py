"""Kinds of faults, one small file each: a function that draws a scenario, and its `FAMILY`."""
