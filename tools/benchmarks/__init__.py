"""The measurements of `tools/bench`, one module a subject; `default` and `chattts` are its two commands."""
