"""edged: an offline text-to-speech daemon for edge devices."""

__version__ = "0.1.0"
