"use strict";
(() => {
  // Commands: a button copies the line.
  for (const line of document.querySelectorAll(".same code.line")) {
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

  // Moments: what a reader's own clock showed, beside UTC.
  const moment = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?$/;
  for (const cell of document.querySelectorAll("td")) {
    if (!moment.test(cell.textContent)) continue;
    const text = cell.textContent.replace(" ", "T");
    const date = new Date(text.endsWith("Z") ? text : `${text}Z`);
    if (!Number.isNaN(date.valueOf())) cell.title = `${date.toLocaleString()} (local time)`;
  }
})();
