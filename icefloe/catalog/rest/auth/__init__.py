"""Says to a REST catalog who asks: nobody, a user, a bearer token, OAuth 2, SigV4, Google, or a class of the user's own."""

from icefloe.catalog.rest.auth.choice import auth_session, table_session
from icefloe.catalog.rest.auth.protocols import Answer, AuthSession, OutgoingRequest, Send
from icefloe.catalog.rest.auth.trust import trusted_properties
from icefloe.catalog.rest.auth.urls import is_web_url, shown_url
