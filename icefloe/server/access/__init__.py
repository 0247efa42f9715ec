"""How clients of the server get at the files of tables: static properties, vended credentials, or signed requests."""

from icefloe.server.access.access import Asking, Endpoints, WarehouseAccess, delegations
from icefloe.server.access.places import Place, Territory
from icefloe.server.access.settings_codec import AccessSettings, Mode, access_settings
from icefloe.server.access.staged_codec import PROPERTY as STAGED_TABLE
