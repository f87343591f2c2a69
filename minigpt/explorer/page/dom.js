// Elements from names, attributes and children. Text only ever becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

// `attributes`: `on` holds listeners by event, `style` CSS properties, null leaves one out.
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on")
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "style")
      for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

// What had the focus has it still: who works by keyboard stays at the same place of the element.
export function replace(element, ...children) {
  const at = reachable(element).indexOf(document.activeElement);
  element.replaceChildren(
    ...children.flat(3).filter((child) => child !== null && child !== undefined),
  );
  const places = reachable(element).slice(0, at + 1);
  places.findLast((one) => !one.disabled)?.focus({ preventScroll: true });
}

function reachable(element) {
  return Array.from(
    element.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]"),
  );
}

// A table for people and screen readers; cells are text or elements, the first of a row its head.
// A column without a heading draws what another one tells.
export function table(caption, headings, rows, attributes = {}) {
  const head = h(
    "tr",
    {},
    headings.map((text) =>
      h("th", { scope: "col" }, text || h("span", { class: "unseen" }, "as a bar")),
    ),
  );
  const body = rows.map((cells) =>
    h(
      "tr",
      {},
      cells.map((cell, at) => (at ? h("td", {}, cell) : h("th", { scope: "row" }, cell))),
    ),
  );
  const parts = [h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, body)];
  return scrolling(caption, h("table", attributes, parts));
}

// What is too wide scrolls in itself, by keyboard too.
export function scrolling(name, ...children) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": name },
    ...children,
  );
}

// Chooses one of several: a group of radio buttons.
export function radios(legend, name, options, chosen, act) {
  return h(
    "fieldset",
    { class: "radios" },
    h("legend", {}, legend),
    Object.entries(options).map(([value, words]) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name,
          value,
          checked: value === chosen,
          on: { change: () => act(value) },
        }),
        words,
      ),
    ),
  );
}

export function button(words, act, attributes = {}) {
  return h("button", { type: "button", on: { click: act }, ...attributes }, words);
}

// A bar from 0 to `share` of its place; `low` and `high` draw an interval, `tick` a mark.
export function bar(share, { low = null, high = null, tick = null, kind = "" } = {}) {
  const at = (value) => `${100 * Math.min(Math.max(value, 0), 1)}%`;
  const marks = [
    h("span", { class: "filled", style: { width: at(share) } }),
    tick !== null && h("span", { class: "tick", style: { left: at(tick) } }),
    low !== null && high !== null && interval(low, high, at),
  ];
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true" }, marks);
}

function interval(low, high, at) {
  const width = `${100 * Math.max(Math.min(high, 1) - Math.max(low, 0), 0)}%`;
  return h("span", { class: "interval", style: { left: at(low), width } });
}

// As in: 12 %; the blank does not break.
export function percent(share) {
  if (share === null || Number.isNaN(share)) return "–";
  return share > 0 && share < 0.005 ? "<1\u00a0%" : `${Math.round(100 * share)}\u00a0%`;
}

export function signed(value, digits = 2) {
  if (value === null || Number.isNaN(value)) return "–";
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
}

export function fixed(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return (value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
}
