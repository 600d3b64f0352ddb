"""Servers of a test, which end as soon as it does."""

import threading
from contextlib import contextmanager


@contextmanager
def serving(server):
    """Answer in a thread. By default a server looks twice a second whether it is to end."""
    thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
