"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);

  const show = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch (error) { return; }
    if (!target) return;
    target.hidden = false;
    for (let place = target; place; place = place.parentElement) {
      if (place.tagName === "DETAILS") place.open = true;
      if (place.classList.contains("group")) place.hidden = false;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", show);
  if (location.hash) show();

  const tools = one(".tools");
  if (!tools) return;
  const rows = all("#rows .row");
  const groups = all("#rows .group");
  const search = one("#search");
  const choices = all("select", tools);
  const count = one("#count");
  const nothing = one("#nothing");
  const unfold = one("#unfold");
  const texts = new Map();
  const text = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const number = new Intl.NumberFormat("en");
  const visible = () => rows.filter((row) => !row.hidden);

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = choices.filter((choice) => choice.value);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(wanted.every((choice) => row.dataset[choice.name] === choice.value)
        && words.every((word) => text(row).includes(word)));
      if (!row.hidden) shown += 1;
    }
    for (const group of groups) group.hidden = !group.querySelector(".row:not([hidden])");
    nothing.hidden = shown > 0;
    count.textContent = shown === rows.length
      ? `${number.format(shown)} shown` : `${number.format(shown)} of ${number.format(rows.length)}`;
  };
  let due = 0;
  search.addEventListener("input", () => {
    cancelAnimationFrame(due);
    due = requestAnimationFrame(filter);
  });
  for (const choice of choices) choice.addEventListener("change", filter);
  unfold.addEventListener("click", () => {
    const open = unfold.dataset.open !== "yes";
    for (const row of visible()) row.open = open;
    unfold.dataset.open = open ? "yes" : "";
    unfold.textContent = open ? "Close all" : "Open all";
  });

  const move = (step) => {
    const shown = visible();
    if (!shown.length) return;
    const at = shown.findIndex((row) => row.contains(document.activeElement));
    const next = shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + step, 0), shown.length - 1)];
    next.querySelector("summary").focus();
    next.scrollIntoView({ block: "nearest" });
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target === search) {
      search.value = "";
      search.blur();
      filter();
      return;
    }
    if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      move(event.key === "j" ? 1 : -1);
    }
  });

  for (const part of all("[data-script]")) part.hidden = false;
  filter();
})();
