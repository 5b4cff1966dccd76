"""Text before it reaches a voice. Text thread (and the CLI); knows nothing about models."""
