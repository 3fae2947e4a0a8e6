"use strict";
(() => {
  const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?$/;
  const clock = document.querySelector(".clock");
  const enhance = () => {
    // Commands: a button copies the line.
    for (const line of document.querySelectorAll(".same code.line:not(:has(+ .copy))")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(line.textContent);
        button.textContent = "Copied";
      });
      line.after(button);
    }

    // Times: UTC, or as the clock of the reader showed them; both can be copied.
    for (const cell of document.querySelectorAll("td")) {
      const utc = cell.dataset.utc || cell.textContent;
      if (!moment.test(utc)) continue;
      const date = new Date(utc.replace(" ", "T").replace(/Z?$/, "Z"));
      if (Number.isNaN(date.valueOf())) continue;
      cell.dataset.utc = utc;
      const ahead = -date.getTimezoneOffset();
      const zone = `${ahead < 0 ? "-" : "+"}${[Math.abs(ahead) / 60, Math.abs(ahead) % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":")}`;
      const local = new Date(date.valueOf() + ahead * 60000).toISOString().replace("Z", zone);
      const isLocal = clock.getAttribute("aria-pressed") === "true";
      const place = cell.querySelector("a") || cell;
      place.textContent = isLocal ? local : utc;
      cell.title = isLocal ? utc : local;
    }
  };
  enhance();
  clock.hidden = false;
  clock.addEventListener("click", () => {
    clock.setAttribute("aria-pressed", String(clock.getAttribute("aria-pressed") !== "true"));
    enhance();
  });

  // Colours: the choice stays for the next page.
  const theme = document.querySelector(".theme");
  try {
    const chosen = localStorage.getItem("theme");
    theme.addEventListener("click", (event) => {
      if (event.target.dataset.themeIs) localStorage.setItem("theme", event.target.dataset.themeIs);
    });
    if (chosen) theme.querySelector(`[data-theme-is="${chosen}"]`)?.click();
  } catch {
    // A file may have no storage.
  }

  // Refresh: a page of what is wrong now reads itself again while somebody looks at it, and says how old it is.
  const body = document.body;
  const refreshMs = Number(body.dataset.refresh) * 1000;
  if (refreshMs) {
    const readAt = document.getElementById("read");
    let since = Date.now();
    let note = "";
    const refresh = async () => {
      if (document.hidden || body.querySelector("details[open]") || body.contains(document.activeElement?.closest("main"))) return;
      try {
        const response = await fetch(location.href);
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        if (!response.ok) throw new Error(page.querySelector(".failure")?.textContent || response.statusText);
        document.querySelector("main").replaceWith(page.querySelector("main"));
        enhance();
        since = Date.now();
        note = "";
      } catch (error) {
        note = `; the last try failed: ${error.message}`;
      }
    };
    setInterval(refresh, refreshMs);
    setInterval(() => {
      readAt.textContent = `Read ${Math.round((Date.now() - since) / 1000)} s ago, again each ${refreshMs / 1000} s${note}`;
    }, 1000);
  }
})();

// The state map: the rows of `sharelens moments`, replayed.
(() => {
  const MOST_OFFSETS = 4096;
  const MOST_RANGES = 200;
  const MARGIN = { left: 78, right: 12, top: 10, bottom: 30 };

  const replayed = (rows, codeOf) => {
    const records = rows.filter((row) => row.change === "record");
    const ranges = rows.filter((row) => row.first_offset !== null);
    const starts = records.map((row) => row.start_offset).filter((start) => start !== null && start >= 0);
    let low = Math.min(...starts, ...ranges.map((row) => row.first_offset));
    let high = Math.max(...starts, ...ranges.map((row) => row.last_offset)) + 1;
    if (!Number.isFinite(low)) return null;
    const wholeHigh = high;
    high = Math.min(high, low + MOST_OFFSETS);
    const height = Math.max(1, high - low);
    const columns = new Map(records.map((row, column) => [row.log_offset, column]));
    const changes = records.map(() => []);
    const first = [];
    for (const row of ranges) {
      const change = [row.first_offset, row.last_offset, row.delivery_state === null ? 0 : codeOf(row), row];
      if (row.change === "first_state") first.push(change);
      else if (columns.has(row.log_offset)) changes[columns.get(row.log_offset)].push(change);
    }
    const cells = new Uint8Array(records.length * height);
    const state = new Uint8Array(height);
    const paint = ([from, to, code]) => {
      if (to >= low && from < high) state.fill(code, Math.max(0, from - low), Math.min(height, to - low + 1));
    };
    first.forEach(paint);
    records.forEach((record, column) => {
      changes[column].forEach(paint);
      cells.set(state, column * height);
    });
    return { records, cells, low, high, height, wholeHigh };
  };

  const draw = async (figure) => {
    const message = figure.querySelector(".map-message");
    const codes = JSON.parse(figure.dataset.codes);
    const unknown = Number(figure.dataset.unknown);
    // Codes of the table begin at 1; 0 is a blank cell.
    const codeOf = (row) => {
      const counts = codes[row.delivery_state];
      return counts ? counts[Math.min(Math.max(row.delivery_count, 0), counts.length - 1)] : unknown;
    };
    message.textContent = "Reading the records of the state log …";
    const saved = figure.querySelector("script.map-rows");
    const response = saved ? null : await fetch(figure.dataset.rows);
    if (response && !response.ok) {
      message.textContent = "The map has no rows: see below why.";
      return;
    }
    const model = replayed(response ? await response.json() : JSON.parse(saved.textContent), codeOf);
    if (!model || !model.records.length) {
      message.textContent = "No record offset had a delivery state in this time.";
      return;
    }
    const { records, cells, low, high, height } = model;
    message.textContent = high < model.wholeHigh
      ? `Record offsets ${low} to ${high - 1} are drawn, of up to ${model.wholeHigh - 1}: give from_offset and to_offset.`
      : "";
    figure.querySelector(".map-parts").hidden = false;
    const canvas = figure.querySelector("canvas");
    const slider = figure.querySelector("input[type=range]");
    const momentText = figure.querySelector(".map-moment");
    const rangeList = figure.querySelector(".map-ranges");
    const words = new Map([...figure.querySelectorAll("[data-code]")].map((mark) => [mark.dataset.code, mark.parentElement.textContent.trim()]));
    const context = canvas.getContext("2d");
    const picture = document.createElement("canvas");
    let painted = "";
    const view = { x: 0, y: 0, columns: records.length, rows: height };
    let at = records.length - 1;
    slider.max = String(at);

    const colours = () => {
      const styles = new Map();
      for (const mark of figure.querySelectorAll("[data-code]")) {
        const style = getComputedStyle(mark);
        styles.set(mark.dataset.code, mark.dataset.code === "start" || mark.dataset.code === "end" ? style.borderTopColor : style.backgroundColor);
      }
      styles.set("ink", getComputedStyle(figure).color);
      return styles;
    };
    const channels = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
    let palette = colours();

    // The picture of the view; a pixel that stands for several record offsets shows the least finished one.
    const paint = (inner) => {
      palette = colours();
      const table = new Uint32Array(256);
      const word = (colour) => {
        const [red, green, blue] = channels(colour);
        return (255 << 24) | (blue << 16) | (green << 8) | red;
      };
      for (const [code, colour] of palette) if (/^\d+$/.test(code)) table[Number(code)] = word(colour);
      const passed = word(palette.get("passed"));
      picture.width = Math.max(1, Math.round(Math.min(view.columns, inner.width)));
      picture.height = Math.max(1, Math.round(Math.min(view.rows, inner.height)));
      const image = new ImageData(picture.width, picture.height);
      const pixels = new Uint32Array(image.data.buffer);
      const top = high - low - view.y;
      for (let x = 0; x < picture.width; x += 1) {
        const column = Math.min(records.length - 1, Math.floor(view.x + ((x + 1) / picture.width) * view.columns - 1e-9));
        const start = (records[column].start_offset ?? -1) - low;
        for (let y = 0; y < picture.height; y += 1) {
          const last = Math.min(height, Math.ceil(top - (y / picture.height) * view.rows - 1e-9));
          const first = Math.max(0, Math.min(last - 1, Math.floor(top - ((y + 1) / picture.height) * view.rows + 1e-9)));
          let code = 0;
          for (let row = Math.max(first, start); row < last; row += 1) code = Math.max(code, cells[column * height + row]);
          pixels[y * picture.width + x] = code ? table[code] : last <= start ? passed : 0;
        }
      }
      picture.getContext("2d").putImageData(image, 0, 0);
    };

    const size = () => ({ width: canvas.clientWidth - MARGIN.left - MARGIN.right, height: canvas.clientHeight - MARGIN.top - MARGIN.bottom });
    const xOf = (column) => MARGIN.left + ((column - view.x) / view.columns) * size().width;
    const yOf = (offset) => MARGIN.top + ((high - offset - view.y) / view.rows) * size().height;
    const time = (record) => new Date(record.log_time_ms).toISOString();

    const line = (name, field) => {
      context.strokeStyle = palette.get(name);
      context.lineWidth = name === "start" ? 2.5 : 1.5;
      context.setLineDash(name === "start" ? [] : [6, 4]);
      context.beginPath();
      let isOpen = false;
      records.forEach((record, column) => {
        const offset = record[field];
        if (offset === null || offset < 0) {
          isOpen = false;
          return;
        }
        const y = yOf(Math.min(offset, high)) + (name === "start" ? context.lineWidth / 2 : 0);
        if (isOpen) context.lineTo(xOf(column), y);
        else context.moveTo(xOf(column), y);
        context.lineTo(xOf(column + 1), y);
        isOpen = true;
      });
      context.stroke();
      context.setLineDash([]);
    };

    const show = () => {
      const ratio = devicePixelRatio || 1;
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = canvas.clientHeight * ratio;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.imageSmoothingEnabled = false;
      const inner = size();
      const looks = JSON.stringify([view, inner, getComputedStyle(figure).color]);
      if (painted !== looks) paint(inner);
      painted = looks;
      context.save();
      context.beginPath();
      context.rect(MARGIN.left, MARGIN.top, inner.width, inner.height);
      context.clip();
      context.drawImage(picture, MARGIN.left, MARGIN.top, inner.width, inner.height);
      line("end", "end_offset");
      line("start", "start_offset");
      context.strokeStyle = palette.get("ink");
      context.lineWidth = 1.5;
      context.strokeRect(xOf(at), MARGIN.top, Math.max(2, inner.width / view.columns), inner.height);
      context.restore();
      context.fillStyle = palette.get("ink");
      context.font = "12px system-ui, sans-serif";
      context.textAlign = "right";
      for (const part of [0, 0.5, 1]) {
        const offset = Math.round(high - view.y - part * view.rows);
        context.fillText(offset.toLocaleString("en"), MARGIN.left - 8, MARGIN.top + part * inner.height + 4);
      }
      for (const part of [0, 1]) {
        const column = Math.min(records.length - 1, Math.max(0, Math.round(view.x + part * (view.columns - 1))));
        context.textAlign = part ? "right" : "left";
        context.fillText(time(records[column]).slice(0, 19) + "Z", MARGIN.left + part * inner.width, canvas.clientHeight - 8);
      }
    };

    const tell = () => {
      const record = records[at];
      const text = `${time(record)} (${new Date(record.log_time_ms).toLocaleString()}), ${record.record_type} at ${record.state_partition}:${record.log_offset}, start offset ${record.start_offset ?? "-"}, end offset ${record.end_offset ?? "unknown"}`;
      momentText.textContent = text;
      slider.value = String(at);
      slider.setAttribute("aria-valuetext", text);
      canvas.setAttribute("aria-label", `State map, ${text}`);
      const items = [];
      const start = Math.max(0, (record.start_offset ?? -1) - low);
      for (let row = start; row < height && items.length < MOST_RANGES;) {
        const code = cells[at * height + row];
        let end = row + 1;
        while (end < height && cells[at * height + end] === code) end += 1;
        if (code) {
          const item = document.createElement("li");
          const link = document.createElement(saved ? "span" : "a");
          if (!saved) link.href = `${figure.dataset.place}/${low + row}`;
          link.textContent = end - row > 1 ? `${low + row}–${low + end - 1}` : String(low + row);
          const mark = document.createElement("i");
          mark.className = `swatch key-cell-${code}`;
          item.append(mark, link, ` ${words.get(String(code))}`);
          items.push(item);
        }
        row = end;
      }
      rangeList.replaceChildren(...items);
    };

    const move = (column) => {
      at = Math.min(records.length - 1, Math.max(0, column));
      if (at < view.x || at >= view.x + view.columns) view.x = Math.min(records.length - view.columns, Math.max(0, at - view.columns / 2));
      show();
      tell();
      if (!saved) history.replaceState(null, "", `#at=${records[at].log_offset}`);
    };
    const bound = () => {
      view.columns = Math.min(records.length, Math.max(4, view.columns));
      view.rows = Math.min(height, Math.max(4, view.rows));
      view.x = Math.min(records.length - view.columns, Math.max(0, view.x));
      view.y = Math.min(height - view.rows, Math.max(0, view.y));
    };
    const zoom = (factor, across = 0.5, down = 0.5) => {
      view.x += view.columns * across * (1 - factor);
      view.y += view.rows * down * (1 - factor);
      view.columns *= factor;
      view.rows *= factor;
      bound();
      show();
    };
    const under = (event) => {
      const box = canvas.getBoundingClientRect();
      const inner = size();
      const across = (event.clientX - box.left - MARGIN.left) / inner.width;
      const down = (event.clientY - box.top - MARGIN.top) / inner.height;
      return { across, down, column: Math.floor(view.x + across * view.columns), offset: Math.floor(high - view.y - down * view.rows) };
    };
    const isInside = ({ across, down }) => across >= 0 && across < 1 && down >= 0 && down < 1;

    slider.addEventListener("input", () => move(Number(slider.value)));
    document.addEventListener("keydown", (event) => {
      const steps = event.target === canvas ? { PageDown: 10, PageUp: -10 } : {};
      const step = { ArrowLeft: -1, ArrowRight: 1, ...steps }[event.key];
      if (!step || ![canvas, document.body].includes(event.target) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      move(at + step);
    });
    for (const button of figure.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => {
        const factor = { in: 0.5, out: 2 }[button.dataset.zoom];
        if (factor) zoom(factor);
        else zoom(1e9);
      });
    }
    canvas.addEventListener("wheel", (event) => {
      const place = under(event);
      if (!isInside(place) || !(event.ctrlKey || document.activeElement === canvas)) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, place.across, place.down);
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { from: event, x: view.x, y: view.y, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const place = under(event);
      if (drag) {
        const inner = size();
        drag.moved ||= Math.abs(event.clientX - drag.from.clientX) + Math.abs(event.clientY - drag.from.clientY) > 4;
        view.x = drag.x - ((event.clientX - drag.from.clientX) / inner.width) * view.columns;
        view.y = drag.y - ((event.clientY - drag.from.clientY) / inner.height) * view.rows;
        bound();
        show();
        return;
      }
      const record = records[place.column];
      if (!isInside(place) || !record) return;
      const code = cells[place.column * height + place.offset - low];
      const state = place.offset < (record.start_offset ?? -1) ? words.get("passed") : code ? words.get(String(code)) : "no delivery state";
      canvas.title = `record ${place.offset}: ${state}, ${time(record)}`;
    });
    canvas.addEventListener("pointerup", (event) => {
      const place = under(event);
      const isClick = drag && !drag.moved && isInside(place);
      drag = null;
      if (isClick && !saved) location.href = `${figure.dataset.place}/${place.offset}`;
    });
    new ResizeObserver(show).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const named = /#at=(\d+)/.exec(location.hash);
    const column = named ? records.findIndex((record) => record.log_offset === Number(named[1])) : -1;
    if (column >= 0) at = column;
    show();
    tell();
  };

  for (const figure of document.querySelectorAll(".state-map")) draw(figure);
})();
