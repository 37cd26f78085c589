"use strict";
(() => {
  const search = document.querySelector("#people-search");
  if (!search) return;
  const rows = [...document.querySelectorAll("#people-rows tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const count = document.querySelector("#people-count");
  const number = new Intl.NumberFormat("en");
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !words.every((word) => texts[place].includes(word));
      if (!row.hidden) shown += 1;
    });
    count.textContent = `${number.format(shown)} of ${number.format(rows.length)}`;
  };
  search.addEventListener("input", filter);
  search.parentElement.hidden = false;
  filter();
})();
