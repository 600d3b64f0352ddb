"""python -m bsdsbench"""

from bsdsbench.cli import main

if __name__ == "__main__":
    main()
