from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tools.kept_jars import kept_jars

PACKAGES = [("first", ["x:*"]), ("second", ())]
JARS = ["first.jar", "second.jar"]


class Resolver:
    """Puts a jar for each package, and remembers its calls; it waits for `may_go` first."""

    def __init__(self):
        self.calls = []
        self.called = Event()
        self.may_go = Event()

    def __call__(self, package, scratch, excluded):
        self.calls.append((package, tuple(excluded)))
        self.called.set()
        self.may_go.wait(10)
        (scratch / "jars").mkdir(exist_ok=True)
        (scratch / "jars" / f"{package}.jar").write_bytes(b"PK")
        return ""


def resolver(monkeypatch, folder):
    resolve = Resolver()
    monkeypatch.setattr("tools.kept_jars.kept_folder", lambda name: folder / "kept" / name)
    monkeypatch.setattr("tools.kept_jars.resolve", resolve)
    return resolve


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_jars_are_fetched_once(monkeypatch, tmp_path):
    resolve = resolver(monkeypatch, tmp_path)
    resolve.may_go.set()
    for _ in range(2):
        assert names_in(kept_jars("some", PACKAGES, JARS)) == JARS
    assert resolve.calls == [("first", ("x:*",)), ("second", ())]


def test_processes_that_need_jars_at_once_wait_for_the_first(monkeypatch, tmp_path):
    resolve = resolver(monkeypatch, tmp_path)

    def jars_seen(_):
        return names_in(kept_jars("some", PACKAGES, JARS))

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(jars_seen, each) for each in range(4)]
        assert resolve.called.wait(30)
        resolve.may_go.set()
        assert [each.result(30) for each in futures] == [JARS] * 4
    assert len(resolve.calls) == len(PACKAGES)


def test_an_unfinished_folder_is_replaced(monkeypatch, tmp_path):
    resolver(monkeypatch, tmp_path).may_go.set()
    unfinished = tmp_path / "kept" / "some"
    unfinished.mkdir(parents=True)
    (unfinished / "first.jar").write_bytes(b"PK")
    assert names_in(kept_jars("some", PACKAGES, JARS)) == JARS
