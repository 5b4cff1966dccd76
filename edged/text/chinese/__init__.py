"""Chinese (Mandarin) readings. Text thread; knows nothing about voices. `reader.py` is the entry."""
