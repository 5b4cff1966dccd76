"""What the words of an installation are said as: entries from YAML files, found in texts. Below `text`."""
