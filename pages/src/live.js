// Updates a live page: the server sends changed parts, and each replaces the content of the element with its id.
"use strict";
(() => {
  const follow = document.querySelector("[data-events]");
  const status = document.getElementById("link");
  if (!follow || !status || !window.EventSource) return;
  let source = null;

  const show = (words) => { if (status.textContent !== words) status.textContent = words; };

  // Elements that the reader has opened, focused or scrolled keep their state.
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
    source.onopen = () => show("Live.");
    source.onmessage = (event) => {
      const part = JSON.parse(event.data);
      const element = document.getElementById(part.id);
      if (element) put(element, part.html);
      const tab = element?.querySelector("[data-tab]");
      if (tab) document.title = tab.dataset.tab;
    };
    source.addEventListener("end", () => { stop(); follow.remove(); show("No further changes."); });
    source.onerror = () => {
      show(source && source.readyState === EventSource.CLOSED
        ? "Not connected: reload the page." : "Connection lost; reconnecting.");
    };
  };
  const stop = () => { if (source) source.close(); source = null; };

  // A hidden page is not updated.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop(); else if (follow.isConnected) start();
  });
  if (!document.hidden) start();
})();
