"""End the process before there is a handler."""

import os

os._exit(7)
