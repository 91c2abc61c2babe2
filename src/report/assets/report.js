// The page works without this: it opens what a link leads to, and sets light or dark. No library, no network.
(() => {
  "use strict";
  const all = (selector) => [...document.querySelectorAll(selector)];

  function open() {                        // the section that the address leads to
    const place = document.getElementById(location.hash.slice(1).split("?")[0]), room = place && place.querySelector(".room");
    if (!room) return;
    room.open = true;
    place.scrollIntoView();
  }
  for (const link of all("nav .links a")) link.addEventListener("click", () => setTimeout(open));
  window.addEventListener("hashchange", open);
  window.addEventListener("beforeprint", () => { for (const room of all(".room, .part")) room.open = true; });
  open();

  const theme = document.getElementById("theme"), order = ["system", "light", "dark"];
  function setTheme(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    theme.textContent = name === "system" ? "theme" : name;
    theme.dataset.now = name;
    try { localStorage.setItem("ucas-report-theme", name); } catch (error) { /* private windows */ }
  }
  let saved = "system";
  try { saved = localStorage.getItem("ucas-report-theme") || "system"; } catch (error) { /* private windows */ }
  setTheme(order.includes(saved) ? saved : "system");
  theme.addEventListener("click", () => setTheme(order[(order.indexOf(theme.dataset.now) + 1) % 3]));
})();
