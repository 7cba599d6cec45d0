"""A model provider in a process of its own, which streams the same answer to everybody at once."""

import logging
import signal

from recollect.testing.providers import ProviderServer, Reply

API_KEY = "test-key"
PIECE = 8  # characters in an event
ANSWER = " ".join(
    f"Word {number} of an answer that is long enough to come in many pieces." for number in range(12)
)


def main() -> None:
    """Serve until a signal comes."""
    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())  # that it is stopped is no news
    with ProviderServer(API_KEY) as server:
        for api in (server.responses, server.chat):
            api.reply_always(Reply(ANSWER, piece=PIECE))
        print(f"provider listens on {server.root_url}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
