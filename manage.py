"""Runs a management command against the servers that the environment names (see `make manage`)."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.config.settings")
    execute_from_command_line(sys.argv)
