"""A small support agent of an invented shop, its season of conversations and its people: what `filmroom demo` plays.

The program is real: its answers follow from its model, its rules, its facts and its tool policies and from nothing
else, so that a failure stops when the right thing is changed, and only then. Everything follows from the seed.

`served` what the agent is given · `shop` its tools · `agent` what it does · `season` what its users want ·
`truth` whether they got it · `stage` one day of both · `people` what they say of it.
"""
