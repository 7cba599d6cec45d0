"""Contents and secrets that were planted are in no log, no metric, no span and no audit entry."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from recollect.migrations import migrate_now
from recollect.testing.providers import CloseBefore, ProviderServer, Refuse, Reply, ToolCall
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.service import ServiceServer

from .places import COMPLETIONS, TALKER, Place, record, say, settings_for, stream
from .waiting import wait_until
