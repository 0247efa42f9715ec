// Progressive enhancement: every page works without it.
"use strict";

// Running jobs: poll the page and replace its content.
function follow(section) {
  const wait = Number(section.dataset.reload);
  const again = async () => {
    try {
      const answer = await fetch(location.href, { headers: { "x-icefloe-follow": "1" } });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = fresh.querySelector("[data-reload]");
      if (!next) {
        document.querySelector("main").replaceWith(fresh.querySelector("main"));
        prepare();
        return;
      }
      section.replaceChildren(...next.childNodes);
    } catch {
      // The server may be temporarily unreachable.
    }
    setTimeout(again, wait);
  };
  setTimeout(again, wait);
}

function prepare() {
  document.querySelectorAll("[data-reload]").forEach(follow);
  for (const button of document.querySelectorAll("button.copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

// A slash focuses the search field.
document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, textarea, select");
  if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    document.getElementById("q")?.focus();
  }
});

prepare();
