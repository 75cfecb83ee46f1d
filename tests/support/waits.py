"""A program that waits until it is ended, two minutes at most."""

import time

time.sleep(120)
