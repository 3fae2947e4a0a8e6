"""Small text files that an option names: read whole, up to a bound that neither a device nor a pipe can move."""

from state_model.errors import SharelensError, UsageError

LARGEST_BYTES = 64 << 20


def read_text_file(path: str, option: str, expected: str) -> str:
    """The text of the file.

    Args:
        path: a file or a pipe.
        option: the option that named it.
        expected: what to give instead of a file that is too large.

    Raises:
        SharelensError: it can't be read, or is not UTF-8.
        UsageError: it is larger than LARGEST_BYTES.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UsageError(f"{option}: {path} is larger than {LARGEST_BYTES >> 20} MiB; give {expected}")
        return content.decode("utf-8")
    except OSError as error:
        raise SharelensError(f"{option}: can't read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SharelensError(f"{option}: can't read {path}: it is no text in UTF-8; give {expected}") from error
