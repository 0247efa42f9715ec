"""Decides how the parts of access control are put together, from settings and a database."""

from dataclasses import dataclass

from icefloe.catalog import Database
from icefloe.errors import InvalidPropertyError
from icefloe.server.auth.audit import Audit, AuditedAuthorizer, write_to_file
from icefloe.server.auth.authenticators import ANONYMOUS, OpenAuthenticator, TokenAuthenticator
from icefloe.server.auth.authorizers import GrantAuthorizer, OpenAuthorizer
from icefloe.server.auth.directory import Directory, DirectorySource
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.oidc import OidcIssuer
from icefloe.server.auth.protocols import Authenticator, Authorizer
from icefloe.server.auth.rate_limits import RateLimiter
from icefloe.server.auth.settings_codec import AuthSettings
from icefloe.server.auth.signed_tokens import SigningKeys, TokenSigner
from icefloe.server.auth.token_endpoint import TokenEndpoint


@dataclass(frozen=True, slots=True)
class Access:
    """Who may come in, what they may do, and the record of it: what the server asks."""

    authenticator: Authenticator
    authorizer: Authorizer
    audit: Audit
    tokens: TokenEndpoint | None = None
    """None: this server issues none."""
    requests: RateLimiter | None = None
    """None: requests are not limited."""
    is_local: bool = False
    """Whether only this machine is let in, so that pages of the web which a browser here shows must be kept out."""


def open_access(*, is_local: bool = True) -> Access:
    """Everything is allowed to everybody: there is nothing to decide, and so nothing to record."""
    return Access(OpenAuthenticator(), OpenAuthorizer(), Audit(), is_local=is_local)


def guarded_access(settings: AuthSettings, database: Database | None, audit: Audit | None = None) -> Access:
    """Access by the settings, and by what the database says, if there is one; it must have the server's tables."""
    if audit is None:
        audit = Audit()
        if settings.audit_file is not None:
            write_to_file(settings.audit_file)
    store = None if database is None else DirectoryStore(database)
    source = _source(settings, store)
    signer = _signer(settings, store)
    anonymous = ANONYMOUS if settings.allows_anonymous else None
    issuers = [OidcIssuer(issuer) for issuer in settings.issuers]
    if len({issuer.settings.issuer for issuer in issuers}) < len(issuers):
        raise InvalidPropertyError("two issuers have the same `iss`; each one has its own name and settings")
    return Access(
        TokenAuthenticator(source, signer, issuers, anonymous=anonymous),
        AuditedAuthorizer(GrantAuthorizer(source, store), audit),
        audit,
        None if signer is None else TokenEndpoint(source, signer, audit),
        None if settings.request_limit is None else RateLimiter(settings.request_limit),
    )


def _source(settings: AuthSettings, store: DirectoryStore | None) -> DirectorySource:
    """The directory of the configuration and the database; what the configuration says of a principal or token counts."""
    if store is None:
        return DirectorySource.of(settings.directory)

    def load(held: int | None) -> tuple[int, Directory] | None:
        loaded = store.load(held)
        return None if loaded is None else (loaded[0], loaded[1].joined(settings.directory))

    return DirectorySource(load, settings.refresh_seconds)


def _signer(settings: AuthSettings, store: DirectoryStore | None) -> TokenSigner | None:
    if settings.signing_keys:
        keys = SigningKeys.of(settings.signing_keys)
    elif store is not None:
        keys = SigningKeys(store.signing_keys)
    else:
        return None
    return TokenSigner(keys, settings.token_seconds, settings.session_seconds)
