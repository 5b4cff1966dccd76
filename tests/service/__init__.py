"""Tests of edged as a service, under a real systemd that they boot themselves."""
