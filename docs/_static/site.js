// What a keyboard or a screen reader needs and the theme does not give: names of the toggles in the
// list of pages, and focus for tables and code that scroll.
const SCROLLING = ".bd-article :is(table, pre, div.highlight, .formula, p:has(> img), figure)";
document.addEventListener("DOMContentLoaded", () => {
  for (const image of document.querySelectorAll(".bd-article section > img")) {
    const box = document.createElement("figure"); // of an example: it scrolls on a phone
    image.replaceWith(box);
    box.append(image);
  }
  for (const toggle of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    const link = toggle.closest("li")?.querySelector("a");
    toggle.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
  }
  for (const box of document.querySelectorAll(".sortable")) sortable(box.querySelector("table"));
  const scrolling = () => {
    for (const box of document.querySelectorAll(SCROLLING))
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight)
        box.tabIndex = 0;
  };
  scrolling();
  addEventListener("load", scrolling); // fonts have arrived, which may be wider
  addEventListener("resize", scrolling);
});

// A table that sorts by a click on a heading, and shows the rows that have every word of a search.
function sortable(table) {
  const body = table.tBodies[0], rows = [...body.rows];
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search these rows";
  search.setAttribute("aria-label", "Search the rows of this table");
  const found = document.createElement("output");
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows)
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    found.textContent = ` ${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  search.addEventListener("input", show);
  table.before(search, found);
  show();
  [...table.tHead.rows[0].cells].forEach((head, k) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[k].textContent.trim();
      const none = (text) => text === "-" || text === "";
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (none(x) || none(y)) return none(x) - none(y);
        const order = x - y || x.localeCompare(y);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });
}
