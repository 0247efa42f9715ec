"""The version table answers by name, and refuses versions that do not exist."""

import pytest

from icefloe.errors import UnsupportedVersionError
from icefloe.versions import ALL_VERSIONS, DEFAULT_VERSION, Feature, allows, check_version, require

ALLOWED = {
    Feature.DELETE_FILES: (2, 3, 4),
    Feature.NEW_POSITION_DELETE_FILES: (2,),
    Feature.DELETION_VECTORS: (3, 4),
    Feature.ROW_LINEAGE: (3, 4),
    Feature.VARIANT: (3, 4),
    Feature.COLUMN_DEFAULTS: (3, 4),
    Feature.SINGLE_SCHEMA_AND_SPEC: (1,),
    Feature.MINUS_ONE_FOR_NO_SNAPSHOT: (1, 2),
    Feature.RELATIVE_PATHS: (4,),
    Feature.FILE_SYSTEM_TABLES: (1, 2, 3),
}


@pytest.mark.parametrize("feature", list(ALLOWED), ids=lambda feature: feature.name)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_features_by_version(version: int, feature: Feature) -> None:
    assert allows(version, feature) == (version in ALLOWED[feature])


@pytest.mark.parametrize("feature", list(Feature), ids=lambda feature: feature.name)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_require_agrees_with_allows_and_names_both_versions(version: int, feature: Feature) -> None:
    if allows(version, feature):
        require(version, feature, "column 'x'")
    else:
        with pytest.raises(UnsupportedVersionError, match=rf"column 'x' needs .* this table is v{version}"):
            require(version, feature, "column 'x'")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_known_versions_pass(version: int) -> None:
    assert check_version(version) == version


@pytest.mark.parametrize("version", [0, 5, -1, True, "2", 2.0, None])
def test_other_versions_are_refused_with_the_value(version: object) -> None:
    with pytest.raises(UnsupportedVersionError, match="is not supported; icefloe supports 1, 2, 3, 4"):
        check_version(version)


def test_default_version_exists() -> None:
    assert DEFAULT_VERSION in ALL_VERSIONS
