// Keeps a page up to date: the server sends parts of it as they change, and each takes the place of the element with its id.
"use strict";
(() => {
  const follow = document.querySelector("[data-events]");
  const told = document.getElementById("link");
  if (!follow || !told || !window.EventSource) return;
  let source = null;

  const tell = (words) => { if (told.textContent !== words) told.textContent = words; };

  // What the reader has opened, focused or scrolled stays so.
  const put = (element, html) => {
    const open = [...element.querySelectorAll("details")].map((d) => d.open);
    const scrolled = [...element.querySelectorAll(".scroll")].map((d) => d.scrollLeft);
    const focusable = "a, button, summary, [tabindex]";
    const focused = [...element.querySelectorAll(focusable)].indexOf(document.activeElement);
    element.innerHTML = html;
    element.querySelectorAll("details").forEach((d, i) => { d.open = open[i] || false; });
    element.querySelectorAll(".scroll").forEach((d, i) => { d.scrollLeft = scrolled[i] || 0; });
    if (focused >= 0) element.querySelectorAll(focusable)[focused]?.focus({ preventScroll: true });
  };

  const start = () => {
    if (source) return;
    source = new EventSource(follow.dataset.events);
    source.onopen = () => tell("Live.");
    source.onmessage = (event) => {
      const part = JSON.parse(event.data);
      const element = document.getElementById(part.id);
      if (element) put(element, part.html);
    };
    source.addEventListener("end", () => { stop(); follow.remove(); tell("Nothing more will change."); });
    source.onerror = () => {
      tell(source && source.readyState === EventSource.CLOSED
        ? "Not connected: load the page again." : "The connection is lost; trying again.");
    };
  };
  const stop = () => { if (source) source.close(); source = null; };

  // Nobody is kept up to date who does not look.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop(); else if (follow.isConnected) start();
  });
  if (!document.hidden) start();
})();
