"""Who calls the server, what they may do, and the record of both."""

from icefloe.server.auth.access import Access, guarded_access, open_access
from icefloe.server.auth.audit import AUDIT_LOG, CURRENT_REQUEST, Audit, RequestFacts
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant, no_such_target
from icefloe.server.auth.protocols import Authenticator, Authorizer, Kind, Principal, Privilege, Target
from icefloe.server.auth.routes_auth import TOKENS_PATH, AccessMiddleware, principal_of, routes, shown_headers
from icefloe.server.auth.settings_codec import AuthSettings, auth_settings
