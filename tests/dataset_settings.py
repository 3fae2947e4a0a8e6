"""What the recorded scenarios tell of the settings of their groups, as the files that commands take."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file of a data set, packed or not."""
    packed = folder / f"{name}.gz"
    text = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    return map(json.loads, text.splitlines())


def given_settings(folder: Path, target: Path) -> list[str]:
    """The options that tell the settings: groups as kafka-configs prints them, the broker's from its record.

    The files are written into `target`.
    """
    printed = []
    for line in lines(folder, "journal.jsonl"):
        words = str(line.get("note", "")).split()
        if words[:2] != ["group", "config"]:
            continue
        pairs = words[3].split(",")
        printed.append(f"Dynamic configs for group {words[2]} are:\n")
        for name, value in zip(pairs[::2], pairs[1::2], strict=True):
            synonyms = f"{{DYNAMIC_GROUP_CONFIG:{name}={value}}}"
            printed.append(f"  {name}={value} sensitive=false synonyms={synonyms}\n")
    groups, broker = target / "groups.txt", target / "server.properties"
    groups.write_text("".join(printed), encoding="utf-8")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    broker.write_text("".join(f"{name}={value}\n" for name, value in meta["brokerConfig"].items()), encoding="utf-8")
    return ["--group-configs", str(groups), "--broker-config", str(broker)]
