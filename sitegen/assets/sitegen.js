// Symbols light up together: in formulas, the symbol table, axes and code, on hover, focus and touch.
// Reading needs none of this; without it the symbols of tables and axes are plain links.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("ms-js");
  let shown = "";
  let pinned = "";

  const elements = (name) => document.querySelectorAll(`.ms-sym[data-sym="${CSS.escape(name)}"]`);

  function hint() {
    let box = document.querySelector(".ms-hint");
    if (!box) {
      box = document.createElement("div");
      box.className = "ms-hint";
      box.setAttribute("role", "status");
      box.hidden = true;
      (document.querySelector(".md-content") || document.body).append(box);
    }
    return box;
  }

  function show(name) {
    if (name === shown) return;
    if (shown) elements(shown).forEach((e) => e.classList.remove("ms-sym--on"));
    shown = name;
    const box = hint();
    box.replaceChildren();
    box.hidden = true;
    if (!name) return;
    elements(name).forEach((e) => e.classList.add("ms-sym--on"));
    const row = document.querySelector(`tr[data-sym-row="${CSS.escape(name)}"]`);
    if (!row) return;
    const letter = row.querySelector("math");
    if (letter) box.append(letter.cloneNode(true));
    const meaning = document.createElement("span");
    meaning.textContent = row.querySelector(".ms-symbols__meaning").textContent.trim();
    box.append(meaning);
    const value = row.querySelector(".ms-right").textContent.trim();
    if (value && value !== "–") {
      const number = document.createElement("strong");
      number.textContent = value;
      box.append(number);
    }
    box.hidden = false;
  }

  const symbol = (event) => {
    const element = event.target.closest && event.target.closest(".ms-sym[data-sym]");
    return element ? element.getAttribute("data-sym") : "";
  };

  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") show(symbol(event) || pinned);
  });
  document.addEventListener("focusin", (event) => show(symbol(event) || pinned));
  document.addEventListener("focusout", () => show(pinned));
  document.addEventListener("click", (event) => {
    const name = symbol(event);
    pinned = name && name !== pinned ? name : "";
    show(pinned);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      pinned = "";
      show("");
    } else if ((event.key === "Enter" || event.key === " ") && symbol(event) && !event.target.closest("a")) {
      event.preventDefault();
      pinned = pinned === symbol(event) ? "" : symbol(event);
      show(pinned);
    }
  });

  function copier(label, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ms-copy";
    button.textContent = label;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = label), 1500);
    });
    return button;
  }

  function openTarget() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    let opened = false;
    for (let fold = target.closest("details:not([open])"); fold; fold = fold.parentElement.closest("details:not([open])")) {
      fold.open = opened = true;
    }
    if (opened) target.scrollIntoView();
  }

  function scrollers() {
    document.querySelectorAll(".ms-scroll, .md-typeset__scrollwrap, .ms-formula__math, .ms-code__lines, .ms-tensors").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }

  function prepare() {
    // One stop per symbol and formula is enough for the keyboard.
    document.querySelectorAll(".ms-formula").forEach((formula) => {
      const met = new Set();
      formula.querySelectorAll("math .ms-sym").forEach((e) => {
        const name = e.getAttribute("data-sym");
        if (!met.has(name)) e.setAttribute("tabindex", "0");
        met.add(name);
      });
      const tex = formula.querySelector(".ms-tex code");
      if (tex && navigator.clipboard && !formula.querySelector(".ms-copy")) {
        tex.parentElement.after(copier("Copy TeX", () => tex.textContent));
      }
    });
    document.querySelectorAll(".ms-code").forEach((figure) => {
      const code = figure.querySelector(".ms-code__lines > code");
      const caption = figure.querySelector("figcaption");
      if (code && navigator.clipboard && !caption.querySelector(".ms-copy")) {
        caption.append(copier("Copy", () => code.textContent));
      }
    });
    // Material names its navigation by labels that are hidden on wide screens.
    document.querySelectorAll("nav.md-nav[aria-labelledby]").forEach((nav) => {
      const label = nav.querySelector(":scope > .md-nav__title");
      const text = label && label.textContent.trim();
      if (text) {
        nav.removeAttribute("aria-labelledby");
        nav.setAttribute("aria-label", text);
      }
    });
    const search = document.querySelector(".md-search[role=dialog]:not([aria-label])");
    if (search) search.setAttribute("aria-label", "Search");
    document.querySelectorAll(".ms-filter").forEach(filter);
    scrollers();
    openTarget();
  }

  // Shows the rows of all tables of a class whose names hold what is typed.
  function filter(bar) {
    const input = bar.querySelector("input");
    const count = bar.querySelector("[data-filter-count]");
    const rows = [...document.querySelectorAll(`table.${input.dataset.filter} tbody tr`)];
    const apply = () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      });
      count.textContent = wanted ? `${shown} of ${rows.length}` : "";
    };
    bar.hidden = false;
    input.addEventListener("input", apply);
  }

  addEventListener("hashchange", openTarget);
  addEventListener("resize", scrollers);
  document.addEventListener("toggle", scrollers, true);
  if (window.document$) window.document$.subscribe(prepare);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", prepare);
  else prepare();
})();
