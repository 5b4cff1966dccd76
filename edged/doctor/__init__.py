"""`edged doctor`: finds out why a box is silent, link by link, and says what to do.

Main thread of the command line; the daemon never imports it. `findings` runs the checks of `machine`,
`setup`, `unit`, `daemon` and `sound` in the order in which a request meets them; `support` packs what they
and the daemon say into an archive, after `redact` took texts and secrets out of it.
"""
