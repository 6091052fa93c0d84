"use strict";
(() => {
  const details = JSON.parse(document.getElementById("details").textContent);
  const rows = [...document.querySelectorAll("#rows > li")];
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const search = document.getElementById("search");
  const differing = document.getElementById("differing");
  const form = document.getElementById("filters");
  const texts = [];

  const differs = (row) => ["changed", "added", "removed"].some((state) => row.classList.contains(state));
  const summary = (row) => row.querySelector(".summary");

  // What a search looks through, made when a row is first searched.
  const textOf = (at) => {
    if (texts[at] === undefined) {
      const told = details[at].map(([, lines]) => lines.replace(/^.\t*/gm, ""));
      texts[at] = [rows[at].querySelector(".title").textContent, ...told].join("\n").toLowerCase();
    }
    return texts[at];
  };

  const off = (what) =>
    new Set([...form.querySelectorAll(`input[data-${what}]`)].filter((box) => !box.checked).map((box) => box.dataset[what]));

  const filter = () => {
    const lanes = off("lane");
    const kinds = off("kind");
    const needle = search.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, at) => {
      const fits =
        !lanes.has(row.dataset.lane) &&
        !kinds.has(row.dataset.kind) &&
        (!differing.checked || differs(row)) &&
        (!needle || textOf(at).includes(needle));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    });
    nothing.hidden = count > 0;
    shown.textContent = `${count} of ${rows.length} rows`;
  };

  // ── a row's details: made of text nodes, when they are first asked for ──

  const lineOf = (line) => {
    const span = document.createElement("span");
    if (line[0] === "-") span.className = "gone";
    if (line[0] === "+") span.className = "new";
    const sign = line[0] === " " ? "" : `${line[0] === "-" ? "−" : "+"} `;
    span.textContent = `${line.slice(1).replace(/[^\t].*$/s, "")}${sign}${line.slice(1).replace(/^\t*/, "")}\n`;
    return span;
  };

  const detailsOf = (at) => {
    const box = document.createElement("div");
    box.className = "details";
    box.id = `details-${at}`;
    for (const [heading, lines] of details[at]) {
      const title = document.createElement("h2");
      const pre = document.createElement("pre");
      title.textContent = heading;
      pre.tabIndex = 0;
      pre.append(...lines.split("\n").map(lineOf));
      box.append(title, pre);
    }
    return box;
  };

  const toggle = (row, open) => {
    const button = summary(row);
    const at = Number(row.dataset.row);
    let box = row.querySelector(".details");
    if (open && !box) {
      box = detailsOf(at);
      row.append(box);
      button.setAttribute("aria-controls", box.id);
    }
    if (box) box.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };

  const isOpen = (row) => summary(row).getAttribute("aria-expanded") === "true";

  // ── moving about ──

  const reveal = (row) => {
    row.scrollIntoView({ block: "center" });
    summary(row).focus({ preventScroll: true });
  };

  const current = () => Number(document.activeElement?.closest("#rows > li")?.dataset.row ?? -1);

  const move = (by, wanted) => {
    const visible = rows.filter((row) => !row.hidden && wanted(row));
    if (!visible.length) return;
    const at = current();
    const later = visible.filter((row) => Number(row.dataset.row) > at);
    const earlier = visible.filter((row) => Number(row.dataset.row) < at);
    reveal(by > 0 ? (later[0] ?? visible[0]) : (earlier.at(-1) ?? visible.at(-1)));
  };

  const keys = {
    n: () => move(1, differs),
    p: () => move(-1, differs),
    j: () => move(1, () => true),
    k: () => move(-1, () => true),
    "/": () => search.focus(),
  };

  document.getElementById("rows").addEventListener("click", (event) => {
    const button = event.target.closest("button.summary");
    if (button) toggle(button.parentElement, !isOpen(button.parentElement));
  });
  document.getElementById("next").addEventListener("click", keys.n);
  document.getElementById("previous").addEventListener("click", keys.p);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input[type=search]");
    if (typing && event.key === "Escape") {
      search.value = "";
      filter();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("all").addEventListener("click", () => {
    form.reset();
    filter();
  });
  filter(); // a browser that comes back to a page keeps what was filtered
})();
