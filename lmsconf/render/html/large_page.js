"use strict";
(() => {
  const CHUNK = 50;
  const CACHED_BLOCKS = 12;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const number = new Intl.NumberFormat("en");
  const main = one("#main");
  const tools = one(".tools");
  const opened = new Set();

  // Packs: a script element holds one line of base64 per gzip member: first the index, then blocks of escaped markup.

  const unpack = async (line) => {
    const bytes = Uint8Array.from(atob(line), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const openPack = async (script) => {
    const [first, ...blocks] = script.textContent.trim().split("\n");
    const index = await unpack(first);
    const starts = [0];
    for (const size of index.blocks) starts.push(starts[starts.length - 1] + size);
    return { index, blocks, starts, cache: new Map(), places: null, texts: null };
  };
  const blockOf = (pack, row) => {
    let low = 0;
    let high = pack.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pack.starts[middle] <= row) low = middle; else high = middle - 1;
    }
    return low;
  };
  const block = (pack, at) => {
    const rows = pack.cache.get(at) ?? unpack(pack.blocks[at]);
    pack.cache.delete(at);
    pack.cache.set(at, rows);
    if (pack.cache.size > CACHED_BLOCKS) pack.cache.delete(pack.cache.keys().next().value);
    return rows;
  };
  const markup = async (pack, rows) => {
    const parts = [];
    for (const row of rows) {
      const at = blockOf(pack, row);
      parts.push((await block(pack, at))[row - pack.starts[at]]);
    }
    return parts.join("");
  };
  const place = (pack, id) => {
    pack.places ??= new Map(pack.index.ids.map((one, row) => [one, row]));
    return pack.places.get(id);
  };

  // The words of a row are searched, and never put into the page.

  const REFERENCES = { amp: "&", lt: "<", gt: ">", quot: "\"" };
  const words = (html) => html.replace(/<[^>]*>/g, "").replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/g,
    (_, hex, decimal, name) => name ? REFERENCES[name] : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)));
  const textsOf = async (pack) => {
    const texts = [];
    for (const line of pack.blocks) for (const html of await unpack(line)) texts.push(words(html).toLowerCase());
    return texts;
  };

  // Lists: the rows of a list that fit the search stand in chunks, which are filled near the window and emptied far from it.

  const chunks = new Map();
  const held = new Set();
  const makeList = (element, pack) => {
    const first = Number(element.dataset.first);
    const rows = Array.from({ length: Number(element.dataset.last) - first }, (_, at) => first + at);
    return { element, pack, rows, chunks: [], measured: false };
  };
  const layOut = (list, rows) => {
    for (const chunk of list.chunks) {
      watcher.unobserve(chunk);
      chunks.delete(chunk);
      chunk.remove();
    }
    list.chunks = [];
    for (let at = 0; at < rows.length; at += CHUNK) {
      const chunk = document.createElement("div");
      chunk.className = "later";
      const state = { list, rows: rows.slice(at, at + CHUNK), filled: null };
      chunk.style.setProperty("--rows", state.rows.length);
      chunks.set(chunk, state);
      list.chunks.push(chunk);
    }
    list.element.append(...list.chunks);
    for (const chunk of list.chunks) watcher.observe(chunk);
  };
  const insert = (chunk, state, html) => {
    // A document of its own: no script in it runs, and no handler but by the policy of this page, which allows none.
    const parsed = new DOMParser().parseFromString(html, "text/html");
    chunk.replaceChildren(...parsed.body.childNodes);
    for (const row of all(":scope > .row", chunk)) row.open = opened.has(row.id);
    chunk.classList.add("there");
    chunk.style.blockSize = "";
    if (state.list.measured || !chunk.offsetHeight) return;
    state.list.measured = true;
    state.list.element.style.setProperty("--row", `${chunk.offsetHeight / state.rows.length}px`);
  };
  const fill = (chunk) => {
    const state = chunks.get(chunk);
    if (!state) return Promise.resolve();
    const filling = state.filled ??= markup(state.list.pack, state.rows).then((html) => {
      if (state.filled === filling && chunks.has(chunk)) insert(chunk, state, html);
    });
    return filling;
  };
  const fillAndHold = (...wanted) => {
    // The window is about to be moved there; until then the watcher would empty what is far from it.
    held.clear();
    for (const chunk of wanted) held.add(chunk);
    return Promise.all(wanted.map(fill));
  };
  const empty = (chunk) => {
    const state = chunks.get(chunk);
    if (!state || !state.filled || held.has(chunk) || chunk.contains(document.activeElement)) return;
    if (chunk.classList.contains("there") && chunk.offsetHeight) chunk.style.blockSize = `${chunk.offsetHeight}px`;
    state.filled = null;
    chunk.classList.remove("there");
    chunk.replaceChildren();
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) fill(entry.target).catch(fail); else empty(entry.target);
    }
  }, { rootMargin: "1500px 0px" });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width === innerWidth) return;
    width = innerWidth;
    for (const [chunk, state] of chunks) {
      chunk.style.blockSize = "";
      state.list.measured = false;
      state.list.element.style.removeProperty("--row");
    }
  });
  document.addEventListener("toggle", ({ target }) => {
    if (!target.id) return;
    if (target.open) opened.add(target.id); else opened.delete(target.id);
  }, true);

  const fail = (error) => {
    for (const note of all("[data-unread]")) {
      note.hidden = false;
      note.lastElementChild.textContent = ` This browser cannot unpack them (${error.message}).`;
    }
  };

  // Search, filters and links.

  const lists = [];
  const rowLists = () => lists.filter((list) => list.element.closest("#rows"));
  const plain = all("#rows .row");
  const groups = all("#rows .group");
  const search = one("#search");
  const choices = tools ? all("select", tools) : [];
  const count = one("#count");
  const plainTexts = new Map();
  const plainText = (row) => {
    if (!plainTexts.has(row)) plainTexts.set(row, row.textContent.toLowerCase());
    return plainTexts.get(row);
  };
  const fits = (chosen, sought, text) => chosen.every(Boolean) && sought.every((word) => text.includes(word));
  const fittingRows = (list, wanted, sought, texts) => {
    const columns = wanted.map((choice) => {
      const { values, rows } = list.pack.index.columns[choice.name];
      return [values.indexOf(choice.value), rows];
    });
    return list.rows.filter((row) => fits(columns.map(([value, rows]) => rows[row] === value), sought, texts ? texts[row] : ""));
  };

  let turn = 0;
  const filter = async () => {
    const mine = turn += 1;
    const sought = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = choices.filter((choice) => choice.value);
    const found = [];
    for (const list of rowLists()) {
      if (sought.length && !list.pack.texts) {
        count.textContent = "Searching …";
        list.pack.texts = textsOf(list.pack);
      }
      found.push([list, fittingRows(list, wanted, sought, sought.length ? await list.pack.texts : null)]);
      if (mine !== turn) return;
    }
    let shown = 0;
    for (const row of plain) {
      row.hidden = !fits(wanted.map((choice) => row.dataset[choice.name] === choice.value), sought, plainText(row));
      if (!row.hidden) shown += 1;
    }
    for (const [list, rows] of found) {
      layOut(list, rows);
      shown += rows.length;
    }
    for (const group of groups) group.hidden = !group.querySelector(".row:not([hidden]), .later");
    const total = plain.length + found.reduce((sum, [list]) => sum + list.rows.length, 0);
    one("#nothing").hidden = shown > 0;
    count.textContent = shown === total ? `${number.format(shown)} shown` : `${number.format(shown)} of ${number.format(total)}`;
  };
  const filterInView = async () => {
    await filter();
    // The page is shorter now: from far below, the window would be left with what stands under the rows.
    if (one("#rows").getBoundingClientRect().bottom < innerHeight / 4) one("#rows").closest("section").scrollIntoView();
  };
  const unfilter = () => {
    search.value = "";
    for (const choice of choices) choice.value = "";
    return filter();
  };
  const chunkOf = (list, row) => list.chunks.find((chunk) => chunks.get(chunk).rows.includes(row));
  const reveal = async (id) => {
    for (const list of lists) {
      const row = place(list.pack, id);
      if (row === undefined || !list.rows.includes(row)) continue;
      if (!chunkOf(list, row)) await unfilter();
      const chunk = chunkOf(list, row);
      for (let around = chunk; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
      // Its neighbours first, so that it does not move once it is shown.
      await fillAndHold(...[chunk.previousElementSibling, chunk, chunk.nextElementSibling].filter(Boolean));
      return;
    }
  };
  const frame = () => new Promise((done) => { requestAnimationFrame(() => { setTimeout(done); }); });
  let touches = 0;
  for (const name of ["wheel", "pointerdown", "keydown", "touchmove"]) addEventListener(name, () => { touches += 1; }, { passive: true });
  const scrollTo = async (target) => {
    // What is filled on the way there has other heights than was guessed: scroll until the target stays in its place,
    // or the reader moves on.
    let before = NaN;
    const started = touches;
    for (let tries = 0; tries < 10 && touches === started; tries += 1) {
      target.scrollIntoView();
      const top = target.getBoundingClientRect().top;
      if (Math.abs(top - before) < 1) return;
      before = top;
      await frame();
      await frame();
      await Promise.all([...chunks.values()].map((state) => state.filled));
    }
  };
  const open = async (target) => {
    target.hidden = false;
    for (let around = target; around; around = around.parentElement) {
      if (around.tagName === "DETAILS") around.open = true;
      if (around.classList.contains("group")) around.hidden = false;
    }
    await scrollTo(target);
  };
  const show = async () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
    if (!id) return;
    main.setAttribute("aria-busy", "true");
    if (!document.getElementById(id)) await reveal(id);
    const target = document.getElementById(id);
    if (target) await open(target);
    held.clear();
    main.removeAttribute("aria-busy");
  };

  const openAll = (button) => {
    const open = button.dataset.open !== "yes";
    for (const list of rowLists()) {
      for (const chunk of list.chunks) {
        for (const row of chunks.get(chunk).rows) {
          if (open) opened.add(list.pack.index.ids[row]); else opened.delete(list.pack.index.ids[row]);
        }
      }
    }
    for (const row of all("#rows .row:not([hidden])")) row.open = open;
    button.dataset.open = open ? "yes" : "";
    button.textContent = open ? "Close all" : "Open all";
  };
  const move = async (step) => {
    const units = () => all("#rows .row:not([hidden]), #rows .later:not(.there)");
    const next = (shown) => {
      const at = shown.findIndex((row) => row.contains(document.activeElement));
      return shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + step, 0), shown.length - 1)];
    };
    const chunk = next(units());
    if (chunk && chunk.matches(".later")) await fillAndHold(chunk);
    const row = next(units());
    if (!row || !row.matches(".row")) return;
    row.querySelector("summary").focus();
    row.scrollIntoView({ block: "nearest" });
    held.clear();
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target === search) {
      search.value = "";
      search.blur();
      filterInView().catch(fail);
      return;
    }
    if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      move(event.key === "j" ? 1 : -1).catch(fail);
    }
  };

  const start = async () => {
    main.setAttribute("aria-busy", "true");
    const packs = new Map();
    for (const script of all("script[data-pack]")) {
      packs.set(script.dataset.pack, await openPack(script));
      script.remove();
    }
    for (const element of all("[data-packed]")) {
      const list = makeList(element, packs.get(element.dataset.packed));
      lists.push(list);
      if (!element.closest("#rows")) layOut(list, list.rows);
    }
    for (const note of all("[data-unread]")) note.hidden = true;
    if (tools) {
      let due = 0;
      search.addEventListener("input", () => {
        cancelAnimationFrame(due);
        due = requestAnimationFrame(() => { filterInView().catch(fail); });
      });
      for (const choice of choices) choice.addEventListener("change", () => { filterInView().catch(fail); });
      one("#unfold").addEventListener("click", (event) => openAll(event.currentTarget));
      addEventListener("keydown", onKey);
      for (const part of all("[data-script]")) part.hidden = false;
      await filter();
    }
    addEventListener("hashchange", () => { show().catch(fail); });
    await show();
    main.removeAttribute("aria-busy");
  };
  start().catch(fail);
})();
