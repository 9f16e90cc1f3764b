// A click on a column's head sorts a long table by it; a second click turns the order round.
// Cells that begin with a number are compared as numbers, others as words.
"use strict";

function cellKey(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text);
  return Number.isNaN(number) ? [1, text] : [0, number];
}

function compare(left, right) {
  if (left[0] !== right[0]) return left[0] - right[0];
  return left[0] === 0 ? left[1] - right[1] : left[1].localeCompare(right[1]);
}

function sortBy(table, head, column) {
  const falling = head.getAttribute("aria-sort") === "ascending";
  const rows = Array.from(table.tBodies[0].rows);
  rows.sort((a, b) => compare(cellKey(a, column), cellKey(b, column)) * (falling ? -1 : 1));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  table.tBodies[0].append(...rows);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    if (!table.tHead || table.tBodies.length !== 1 || table.tBodies[0].rows.length < 5) continue;
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      head.tabIndex = 0;
      head.title = "Sort by this column";
      head.classList.add("sortable");
      head.addEventListener("click", () => sortBy(table, head, column));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sortBy(table, head, column);
      });
    });
  }
});
