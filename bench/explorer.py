"""Pages of `sharelens explore` over a lake: the first one after the command, further ones, the slider, and memory."""

import json
import re
import shutil
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path

from bench.measure import COMMAND
from sharelens.pages.address import path

REPEATS = 3
STEPS = 50
TIMEOUT_MS = 120_000
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
STEP = """async (steps) => {
  const slider = document.querySelector(".state-map input[type=range]");
  const times = [];
  for (let step = 0; step < steps; step += 1) {
    const begun = performance.now();
    slider.value = String(Math.round((step / steps) * Number(slider.max)));
    slider.dispatchEvent(new Event("input"));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    times.push(performance.now() - begun);
  }
  return [times, Number(slider.max) + 1];
}"""


def lines(lake: Path) -> Iterator[tuple[str, str, str]]:
    """(what, figure, note)."""
    begun = time.perf_counter()
    words = [str(COMMAND), "explore", "--lake", str(lake), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            ask = _asking(link)
            ask("/")
            yield "the first page, from the command on", f"{time.perf_counter() - begun:.2f} s", "a cold process"
            row = json.loads(ask("/ask/state.json?limit=1"))[0]
            group, topic, partition = row["group_id"], row["topic_id"], str(row["partition"])
            share_partition = path("groups", group, topic, partition)
            pages = {
                "overview": "/",
                "group": path("groups", group),
                "share partition": share_partition,
                "record": f"{share_partition}/{max(0, row['start_offset'] - 1)}",
                "rows of a state map": f"/ask/moments.json?group={group}&topic={topic}&partition={partition}",
            }
            for name, place in pages.items():
                seconds = statistics.median(_seconds(ask, place) for _ in range(REPEATS))
                yield f"page: {name}", f"{seconds:.2f} s", f"median of {REPEATS}"
            yield "memory with its processes", f"{_memory_bytes(process.pid) / 2**20:.0f} MiB", "proportional set size"
            yield from _slider(link, share_partition)
        finally:
            process.terminate()


def _asking(link: str) -> Callable[[str], bytes]:
    """Asks for pages with the cookie that the link gives."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.open(link).read()
    base = link.partition("/?")[0]

    def ask(place: str) -> bytes:
        content: bytes = opener.open(base + place).read()
        return content

    return ask


def _seconds(ask: Callable[[str], bytes], place: str) -> float:
    begun = time.perf_counter()
    ask(place)
    return time.perf_counter() - begun


def _memory_bytes(pid: int) -> int:
    """Memory of a process and those below it; what they share counts once."""
    try:
        own_kb = int(match[1]) if (match := PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())) else 0
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return 0
    return 1024 * own_kb + sum(map(_memory_bytes, map(int, children)))


def _slider(link: str, place: str) -> Iterator[tuple[str, str, str]]:
    """A step of the slider in a browser; nothing to say without one."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        yield "a step of the slider", "skipped", "no Chromium: make browser"
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(link)
        page.goto(link.partition("/?")[0] + place)
        page.locator(".state-map .map-parts").wait_for(state="visible")
        times, moments = page.evaluate(STEP, STEPS)
        yield (
            "a step of the slider",
            f"{statistics.median(times):.0f} ms, at most {max(times):.0f} ms",
            f"{STEPS} steps over {moments:,} moments, until it is drawn",
        )
        browser.close()
