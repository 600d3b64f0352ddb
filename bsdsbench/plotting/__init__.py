"""Pictures: Display objects over computed results. The only room that imports matplotlib."""

from __future__ import annotations
