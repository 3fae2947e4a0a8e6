"""The option that names a lake."""

from sharelens.cli.options.data import without_values


def test_a_record_of_a_command_line_has_no_values_of_storage_options() -> None:
    words = [
        "state",
        "--storage-option",
        "aws_secret_access_key=hidden",
        "--storage-option=aws_region=hidden",
        "--lake",
    ]
    shown = without_values(words)
    assert shown == ["state", "--storage-option", "aws_secret_access_key=…", "--storage-option=aws_region=…", "--lake"]
    assert without_values([]) == []
