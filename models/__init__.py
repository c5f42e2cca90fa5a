"""What judges or learns: pure, values in and values out.

Tables and queries are in `store`, what happens in which order is in `flows`. Of the other folders only
`store.records` and `store.errors` may be imported here.
"""
