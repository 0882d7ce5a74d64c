"""The command line against an S3 server, with a lock that is renewed and given up soon, killed on the way.

Usage: s3_run.py STEP WORDS…: a step is a write to an object, a rename or a removal; 0 kills nothing.
"""

import sys

from tests.faults.killed import Fuse
from unface.cli import main
from unface.output import lock
from unface.output.place import Place, Sink

if __name__ == "__main__":
    lock._RENEWED_S, lock._ABANDONED_S = 0.2, 1.0
    if step := int(sys.argv[1]):
        fuse = Fuse(step)
        for owner, name in ((Sink, "write"), (Sink, "finish"), (Place, "write"), (Place, "drop")):
            setattr(owner, name, fuse.around(getattr(owner, name)))
    sys.argv = ["unface", *sys.argv[2:]]
    main()
