"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.querySelector("#theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  const kept = (value) => {
    // A page that is a file may have no storage; then the choice lasts as long as the page.
    try {
      if (value) localStorage.setItem("lmsconf-theme", value);
      return localStorage.getItem("lmsconf-theme");
    } catch (error) {
      return value;
    }
  };
  const chosen = kept();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    kept(root.dataset.theme);
    label();
  });
  label();
})();
