"""Record the data sets of consumer groups again.

    python -m tools.record_groups FOLDER [consumer] [consumer-migration]

Each set becomes a folder below FOLDER, laid out as tests/data/README.md says; a folder that exists is an error. A set
takes about three minutes: a Kafka 4.3.1 of this machine on the loopback address, and a JVM with its clients.
`python -m tools.pack_datasets FOLDER` then packs them for the tests.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.record_groups.cluster import Cluster
from tools.record_groups.consumer import CONSUMER_SETTINGS, record_consumer
from tools.record_groups.data_set import write_data_set
from tools.record_groups.migration import MIGRATION_SETTINGS, record_migration
from tools.record_groups.moments import Recorder

SETS: dict[str, tuple[dict[str, object], Callable[[Cluster, Recorder], None]]] = {
    "consumer": (CONSUMER_SETTINGS, record_consumer),
    "consumer-migration": (MIGRATION_SETTINGS, record_migration),
}


def main(argv: Sequence[str]) -> int:
    """Record the sets that `argv` names behind the folder, or all."""
    folder, *names = argv or [""]
    if not folder or not set(names) <= set(SETS):
        print(f"usage: python -m tools.record_groups FOLDER [{'] ['.join(SETS)}]", file=sys.stderr)
        return 2
    for name in names or SETS:
        _record(name, Path(folder) / name)
    return 0


def _record(name: str, target: Path) -> None:
    settings, play = SETS[name]
    target.mkdir(parents=True)
    scratch = tempfile.TemporaryDirectory(prefix="record-groups-")
    with scratch, Cluster(Path(scratch.name) / "kafka", settings) as cluster:
        recorder = Recorder(cluster)
        try:
            play(cluster, recorder)
        finally:
            cluster.end_members()
        cluster.stop()
        write_data_set(cluster, recorder, target, " ".join(str(play.__doc__).split()))
    print(f"{target}: {len(recorder.moments)} moments")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
