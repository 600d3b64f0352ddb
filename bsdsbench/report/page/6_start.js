
  columns.forEach((column, k) => $("limit-column").append(make("option", { value: k }, label(column))));
  for (const id of ["filter", "limit"]) $(id).addEventListener("input", body);
  for (const id of ["limit-column", "limit-side"]) $(id).addEventListener("change", body);
  $("bin").addEventListener("click", () => limitTo(null));
  $("every").checked = runs.length < 3 || !mains.length;
  const everyColumn = () => $("table").classList.toggle("main-only", !$("every").checked);
  $("every").addEventListener("change", everyColumn);
  everyColumn();
  sliceFilter();
  drawPlot();
  pairs();
  header();
  sortBy(-1);
  extremes();
  downloads();
  viewer();
  fromAddress();
