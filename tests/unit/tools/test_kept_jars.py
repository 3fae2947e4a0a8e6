from tools.kept_jars import kept_jars


def test_jars_are_fetched_once(monkeypatch, tmp_path):
    asked = []

    def resolve(package, scratch, excluded):
        asked.append((package, tuple(excluded)))
        (scratch / "jars").mkdir(exist_ok=True)
        (scratch / "jars" / f"{package}.jar").write_bytes(b"PK")
        return ""

    monkeypatch.setattr("tools.kept_jars.kept_folder", lambda name: tmp_path / name)
    monkeypatch.setattr("tools.kept_jars.resolve", resolve)
    for _ in range(2):
        folder = kept_jars("some", [("one", ["x:*"]), ("two", ())], ["one.jar", "two.jar"])
    assert sorted(path.name for path in folder.iterdir()) == ["one.jar", "two.jar"]
    assert asked == [("one", ("x:*",)), ("two", ())]
