"""The procedures about delete files; Java Iceberg has the first of them only as a step of `rewrite_data_files`."""

from dataclasses import astuple

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, integers, procedure


@procedure(
    integers(
        "removed_delete_files_count",
        "removed_position_delete_files_count",
        "removed_equality_delete_files_count",
        "removed_deletion_vectors_count",
    ),
    Parameter("branch", Type.STRING),
)
def _remove_dangling_deletes(call: Call) -> Rows:
    return [astuple(call.table().maintenance.remove_dangling_deletes(call.get("branch")))[:4]]
