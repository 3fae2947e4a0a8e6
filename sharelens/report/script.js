"use strict";
(() => {
  const root = document.documentElement;

  // Colours: as the system has them, or as chosen here.
  const theme = document.querySelector(".theme");
  const buttons = [...theme.querySelectorAll("button")];
  theme.hidden = false;
  theme.addEventListener("click", (event) => {
    const chosen = event.target.dataset.themeIs;
    if (!chosen) return;
    if (chosen === "auto") delete root.dataset.theme;
    else root.dataset.theme = chosen;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.target));
  });

  // Tables: a heading sorts, a field filters.
  const words = new Intl.Collator("en", { numeric: true });
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (left, right) =>
    typeof left === "number" && typeof right === "number" ? left - right : words.compare(String(left), String(right));
  for (const table of document.querySelectorAll("table[data-tools]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : numeric;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => sign * compare(value(a, column), value(b, column)));
        table.tBodies[0].append(...rows);
      });
    });
  }
  for (const field of document.querySelectorAll(".find input")) {
    const table = field.closest(".sheet").querySelector("table");
    field.parentElement.hidden = false;
    const shown = field.parentElement.querySelector("output");
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        left += row.hidden ? 0 : 1;
      }
      shown.textContent = wanted ? `${left} of ${table.tBodies[0].rows.length}` : "";
    });
  }

  // Charts: what a mark says, beside the pointer.
  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof SVGElement && event.target.closest('[role="graphics-symbol"][aria-label]');
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("aria-label");
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  });
})();
