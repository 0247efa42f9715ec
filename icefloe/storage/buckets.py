"""How one bucket or container of an object store is reached through obstore: connections, waiting, retries, credentials."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from icefloe.storage.vended import Grant

if TYPE_CHECKING:
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig, S3Store

    RemoteStore = S3Store | GCSStore | AzureStore

PART_SIZE = 16 << 20


@dataclass(frozen=True, slots=True)
class Bucket:
    """How one bucket or container is reached, and what its store is known to do."""

    open_store: "Callable[[bool, str | None], RemoteStore]" = field(repr=False)
    """Opens it: with or without retries, rooted in a folder or in the bucket itself."""
    secrets: tuple[str, ...] = field(repr=False)
    known_conditional: bool
    """Whether conditional writes are known to be kept; else they are tried out once."""
    advice: str
    """What to look at when the store refuses us."""
    part_size: int = PART_SIZE
    reaches_empty_names: bool = False
    """Whether `a//b` can be reached by rooting a store in the folder `a/`."""
    grant: Grant | None = None
    """Where its credentials come from, if a catalog vends them."""


def client_options(
    allow_http: bool,
    connect: timedelta = timedelta(seconds=10),
    read: timedelta = timedelta(seconds=60),
    proxy: str | None = None,
) -> "ClientConfig":
    """Timeouts for connecting and for silence; the whole request may take longer, since files may be large."""
    options: ClientConfig = {
        "connect_timeout": connect,
        "read_timeout": read,
        "timeout": max(timedelta(seconds=300), read),
        "allow_http": allow_http,
    }
    if proxy:
        options["proxy_url"] = proxy
    return options


def ask_again() -> datetime:
    """The expiry of a credential that obstore is to ask for at each request, since the newest one is known here."""
    return datetime.now(UTC)


def retry_options(retries: int, first_wait_ms: int = 100, longest_wait_ms: int = 20_000) -> "RetryConfig":
    """Retries with growing waits, for at most two minutes."""
    return {
        "max_retries": retries,
        "retry_timeout": timedelta(minutes=2),
        "backoff": {
            "init_backoff": timedelta(milliseconds=first_wait_ms),
            "max_backoff": timedelta(milliseconds=max(first_wait_ms, longest_wait_ms)),
            "base": 2,
        },
    }
