"""Reading from running systems: one file a system, one contract. What a page holds is mapped by the system's reader.

A listing is cut into slices of time, so that a page that is broken costs the moment it is of, and not the rest.
"""
