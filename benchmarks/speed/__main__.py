import sys

from benchmarks import speed
from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(speed))
