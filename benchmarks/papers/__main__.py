import sys

from benchmarks import papers
from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(papers))
