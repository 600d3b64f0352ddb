// What a keyboard or a screen reader needs and the theme does not give: names of the toggles in the
// list of pages, and focus for tables and code that scroll.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    const link = toggle.closest("li")?.querySelector("a");
    toggle.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
  }
  const scrolling = () => {
    for (const box of document.querySelectorAll(".bd-article :is(table, pre, div.highlight)"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  scrolling();
  addEventListener("resize", scrolling);
});
