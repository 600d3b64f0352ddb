
  // ---- table of images --------------------------------------------------------------------------
  const hasThumbs = images.some((image) => image.thumb);
  const hasPictures = hasThumbs || data.served;
  let order = { key: null, down: false };
  let visible = images.map((_, i) => i);
  let bin = null;

  // Links can be copied and opened again: the address names the image.
  const address = (i) => `#image=${encodeURIComponent(images[i].id)}`;
  function link(i, css, ...children) {
    return make("a", {
      href: address(i), class: css, onclick: (event) => { event.preventDefault(); open(i); },
    }, ...children);
  }

  function header() {
    const row = make("tr");
    if (hasThumbs) row.append(make("th", { scope: "col" }, "Picture"));
    const cell = (text, key, css, above = "") => {
      const button = make("button", { type: "button", onclick: () => sortBy(key) });
      if (above) button.append(make("small", { title: above }, above));
      button.append(text);
      row.append(make("th", { scope: "col", class: css, "aria-sort": "none", "data-key": key }, button));
    };
    cell("Image", -1, "image");
    columns.forEach((column, k) => {
      const above = runs.length > 1 && column.run >= 0 ? runs[column.run].name : "";
      cell(column.label, k, `number${column.main ? "" : " more"}`, above);
    });
    $("table").tHead.append(row);
  }
  function sortBy(key) {
    order = { key, down: order.key === key ? !order.down : false };
    for (const th of $("table").tHead.querySelectorAll("th[aria-sort]")) {
      const mine = Number(th.dataset.key) === key;
      th.setAttribute("aria-sort", mine ? (order.down ? "descending" : "ascending") : "none");
    }
    body();
  }
  const names = new Intl.Collator("en", { numeric: true });
  function compare(a, b) {
    let d;
    if (order.key < 0) d = names.compare(images[a].id, images[b].id);
    else {
      const u = images[a].values[order.key], v = images[b].values[order.key];
      if (u === null || v === null) return (u === null) - (v === null);
      d = u - v;
    }
    return (order.down ? -d : d) || a - b;
  }
  const members = data.groups.map((group) => new Set(group.ids));
  function sliceFilter() {
    if (!data.groups.length) return;
    $("slice-label").hidden = false;
    $("slice").append(make("option", { value: "" }, "every slice"));
    data.groups.forEach((group, k) => $("slice").append(make("option", { value: k }, group.label)));
    $("slice").addEventListener("change", body);
  }
  function wanted(i) {
    const word = $("filter").value.trim().toLowerCase();
    if (word && !images[i].id.toLowerCase().includes(word)) return false;
    const slice = $("slice").value;
    if (slice && !members[Number(slice)].has(images[i].id)) return false;
    const within = (k, test) => images[i].values[k] !== null && test(images[i].values[k]);
    if (bin && !within(bin.k, bin.of)) return false;
    const limit = $("limit").value;
    const sign = $("limit-side").value === "least" ? -1 : 1;
    return limit === "" || within(Number($("limit-column").value), (v) => sign * v <= sign * Number(limit));
  }
  function body() {
    visible = images.map((_, i) => i).filter(wanted).sort(compare);
    $("table").tBodies[0].replaceChildren(...visible.map(row));
    $("count").textContent = `${visible.length} of ${images.length} images`;
  }
  const rows = new Map();
  function row(i) {
    if (!rows.has(i)) {
      const image = images[i], made = make("tr");
      if (hasThumbs) {
        const css = image.paper ? "thumb paper" : "thumb";
        const thumb = image.thumb && make("img", { class: css, alt: `open ${image.id}`, loading: "lazy", src: image.thumb });
        made.append(make("td", {}, ...(thumb ? [link(i, "picture", thumb)] : [])));
      }
      made.append(make("td", {}, link(i, "name", image.id)));
      columns.forEach((c, k) => {
        made.append(make("td", { class: `number${c.main ? "" : " more"}` }, number(image.values[k], c)));
      });
      rows.set(i, made);
    }
    return rows.get(i);
  }
  function limitTo(chosen) {
    bin = chosen;
    $("bin").hidden = !bin;
    if (bin) {
      $("bin").textContent = `${label(columns[bin.k])} ${bin.low.toFixed(2)} to ${bin.high.toFixed(2)} ×`;
      $("images").scrollIntoView();
    }
    body();
  }

  // ---- worst and best -------------------------------------------------------------------------
  function extremes() {
    if (!mains.length || images.length < 2) return;
    $("extremes").hidden = false;
    for (const column of mains) $("by").append(make("option", { value: column.k }, label(column)));
    $("by").addEventListener("change", strips);
    strips();
  }
  function strips() {
    const key = Number($("by").value);
    const ranked = images.map((image, i) => [image.values[key], i]).filter(([v]) => v !== null);
    ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const count = Math.min(6, Math.floor(ranked.length / 2));
    const show = (id, part) => $(id).replaceChildren(...part.map(([v, i]) => card(v, i, columns[key].run)));
    show("worst", ranked.slice(0, count));
    show("best", count ? ranked.slice(-count).reverse() : []);
  }
  function card(value, i, run) {
    const image = images[i], made = link(i, "card");
    made.append(make("b", { title: image.id }, image.id), number(value, columns[Number($("by").value)]));
    pictures(i).then(async (found) => {
      const drawn = found.runs && found.runs[Math.max(run, 0)];
      if (!found.photo && !drawn) return;
      const box = stack(found, [[found.photo, "pale"], [found.void, ""]], false);
      made.prepend(box);
      if (drawn) {
        const canvas = make("canvas", { class: drawn.areas && found.photo ? "areas" : null });
        box.append(canvas);
        paint(canvas, await unpacked(drawn), drawn.best, drawn.classes);
      }
    });
    return made;
  }

  // ---- downloads ----------------------------------------------------------------------------------
  function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  const downloadButton = (name, text) =>
    make("button", { type: "button", class: "download", onclick: () => download(name, text()) }, `Download ${name}`);
  // A spreadsheet would take a name that begins so for a formula.
  const field = (text) => {
    const safe = /^\s*[=+\-@]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  function imageCsv() {
    const head = ["image", ...columns.map((c) => label(c))].map(field).join(",");
    const lines = visible.map((i) =>
      [field(images[i].id), ...images[i].values.map((v) => (v === null ? "" : String(v)))].join(","));
    return `${[head, ...lines].join("\n")}\n`;
  }
  function downloads() {
    for (const slot of document.querySelectorAll("[data-csv]")) {
      const key = slot.dataset.csv;
      slot.append(downloadButton(`${key}.csv`, () => data.csv[key]));
    }
    if (images.length) $("image-tools").append(downloadButton("images-shown.csv", imageCsv));
  }
