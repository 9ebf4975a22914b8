"use strict";
// Sort tables by their headings.
for (const table of document.querySelectorAll("table[id]")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("number");
      const now = head.getAttribute("aria-sort");
      // Numbers start with the largest, names with A.
      const falling = now ? now === "ascending" : numeric;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
      const value = (text) => {
        const number = Number.parseFloat(text.replaceAll(",", ""));
        return Number.isNaN(number) ? -Infinity : number;
      };
      const compare = (one, other) =>
        numeric ? value(key(one)) - value(key(other)) : key(one).localeCompare(key(other), "en", { numeric: true });
      const rows = [...table.tBodies[0].rows].sort(compare);
      table.tBodies[0].append(...(falling ? rows.reverse() : rows));
    });
  });
}
// Filter rows of tables and cards of classes by their text.
for (const box of document.querySelectorAll("input[data-filters]")) {
  const target = document.getElementById(box.dataset.filters);
  const items = [...(target.tBodies ? target.tBodies[0].rows : target.children)];
  const status = box.parentElement.querySelector("[role=status]");
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      const said = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => said.includes(word));
      shown += item.hidden ? 0 : 1;
    }
    status.textContent = words.length ? `${shown} of ${items.length}` : "";
  });
}
// Show the text of a point or a cell below the figure, for touch screens.
for (const figure of document.querySelectorAll("figure:has(.tip)")) {
  const tip = figure.querySelector(".tip");
  for (const event of ["pointerover", "click"]) {
    figure.querySelector("svg").addEventListener(event, ({ target }) => {
      const title = target.querySelector?.(":scope > title");
      if (title) tip.textContent = title.textContent;
    });
  }
}
