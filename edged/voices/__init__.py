"""Voices: what a voice is, and one package per model family."""
