"""What a worker process needs, imported once in the server that workers are forked from."""

import bsdsbench.boundary
import bsdsbench.job
import bsdsbench.loaders  # noqa: F401
