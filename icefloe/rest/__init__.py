"""What a client and a server of the REST catalog protocol say to each other: paths, headers, bodies and errors, both ways."""

from icefloe.rest import headers_codec as headers, paths_codec as paths
from icefloe.rest.config_codec import CatalogConfig, decode_config, encode_config
from icefloe.rest.content_files_codec import PartitionTypes, partition_types
from icefloe.rest.credentials_codec import (
    cache_control,
    decode_sign_request,
    decode_signed_request,
    encode_sign_request,
    encode_signed_request,
)
from icefloe.rest.errors_codec import (
    Context,
    Problem,
    decode_error,
    encode_error,
    error_for,
    error_response,
    problem_of,
)
from icefloe.rest.metrics_codec import (
    OtherReport,
    Received,
    decode_report,
    encode_commit_report,
    encode_scan_report,
)
from icefloe.rest.namespaces_codec import (
    NamespaceProperties,
    Page,
    PropertiesChange,
    PropertiesChanged,
    decode_identifiers,
    decode_namespace_properties,
    decode_namespaces,
    decode_properties_change,
    decode_properties_changed,
    encode_identifiers,
    encode_namespace_properties,
    encode_namespaces,
    encode_properties_change,
    encode_properties_changed,
)
from icefloe.rest.oauth_codec import OAuthProblem, Token, decode_form, decode_token, encode_form, encode_token
from icefloe.rest.paths_codec import Endpoint, Levels, parse_endpoint
from icefloe.rest.plans_codec import (
    PlanMode,
    PlanningResult,
    PlanStatus,
    PlanTableScanRequest,
    ScanTasks,
    TaskContext,
    decode_plan_request,
    decode_plan_task,
    decode_planning_result,
    decode_scan_tasks,
    encode_plan_request,
    encode_plan_task,
    encode_planning_result,
    encode_result_of,
    encode_scan_tasks,
    task_context,
)
from icefloe.rest.tables_codec import (
    ALL_SNAPSHOTS,
    REFERENCED_SNAPSHOTS,
    Labels,
    LoadedTable,
    NewTable,
    Registration,
    RemoteSigning,
    Rename,
    StorageCredential,
    Surplus,
    TableCommit,
    decode_commit,
    decode_credentials,
    decode_loaded_table,
    decode_new_table,
    decode_registration,
    decode_rename,
    decode_transaction,
    encode_commit,
    encode_committed,
    encode_credentials,
    encode_loaded_table,
    encode_new_table,
    encode_registration,
    encode_rename,
    encode_transaction,
    join_loaded,
)
from icefloe.rest.views_codec import (
    LoadedView,
    NewView,
    ViewCommit,
    decode_loaded_view,
    decode_new_view,
    decode_view_commit,
    encode_loaded_view,
    encode_new_view,
    encode_view_commit,
)
