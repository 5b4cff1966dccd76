"""Inference engines: what an engine is, its buffers, and one module per backend."""
