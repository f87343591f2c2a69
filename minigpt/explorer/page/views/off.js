// Heads switched off, and what the model then predicts.

import { bar, button, h, radios, replace, signed, table } from "../dom.js";
import { softmax } from "../model.js";
import { headMap, sign, textChooser, wordStrip } from "../parts.js";

const BY = { mean: "its mean output", zero: "nothing" };
const TOP = 8;
const [SEEN, FULL_COLOUR] = [0.05, 2]; // nats

export const off = {
  title: "Switch off",
  lead: "Switch heads off and see what becomes harder to predict: words coloured and underlined by how much more, or less, they surprise the model.",
  build(app) {
    const [toggles, by, total, after] = [
      h("div", { class: "map" }),
      h("div"),
      h("p", { class: "sentence" }),
      h("div"),
    ];
    const chooser = textChooser(app);
    const strip = wordStrip(app, {
      label: "The text; left and right arrows choose a word",
      dresser: () => dresser(app),
    });
    const element = h(
      "div",
      {},
      h("div", { class: "controls" }, chooser.element, by),
      toggles,
      total,
      h("div", { class: "page" }, strip.element),
      h(
        "p",
        { class: "hint" },
        "Orange with a solid line: harder to predict. Blue with a dotted line: easier.",
      ),
      after,
    );
    const update = () => {
      replace(
        by,
        radios("A head that is off puts out", "by", BY, app.place.by, (value) =>
          app.go({ by: value }),
        ),
      );
      replace(toggles, togglesOf(app));
      chooser.update();
      strip.update();
      const words = inTotal(app);
      replace(total, words);
      app.say(words);
      replace(after, beforeAndAfter(app));
    };
    return { element, update };
  },
};

function togglesOf(app) {
  const gone = new Set(app.off());
  const back = button("Switch all back on", () => app.go({ off: "" }), { disabled: !gone.size });
  return [headMap(app, (card) => toggle(app, card, gone)), back];
}

function toggle(app, card, gone) {
  const isOff = gone.has(card.name);
  const act = () => {
    const rest = app.off().filter((name) => name !== card.name);
    app.go({ off: (isOff ? rest : [...rest, card.name]).join(",") });
  };
  return button(
    [sign(app, card.kind), h("span", { class: "name" }, isOff ? `${card.name} off` : card.name)],
    act,
    {
      class: "head",
      "data-head": card.name,
      "aria-pressed": String(isOff),
      "aria-label": `${card.name} off: ${card.words}`,
    },
  );
}

// ------------------------------------------------------------------------------ losses

// −ln p of each word but the first: how much it surprises the model.
export function losses(reading) {
  return reading.ids.map((id, at) =>
    at ? -Math.log(Math.max(softmax(reading.logits[at - 1])[id], 1e-30)) : 0,
  );
}

// How much more each word costs now, and the mean loss before and after.
function moreLoss(app) {
  const [before, after] = [losses(app.read()), losses(app.readChanged())];
  const mean = (values) => values.reduce((a, b) => a + b, 0) / Math.max(values.length - 1, 1);
  const more = after.map((loss, at) => loss - before[at]);
  return { more, before: mean(before), after: mean(after) };
}

// What shows on each word how much harder it has become.
function dresser(app) {
  const { more } = moreLoss(app);
  return (word, at) => {
    const share = Math.min(Math.abs(more[at]) / FULL_COLOUR, 1);
    word.style.setProperty("--share", `${Math.round(100 * share)}%`);
    if (Math.abs(more[at]) >= SEEN) word.classList.add(more[at] > 0 ? "worse" : "better");
    word.title = `${signed(more[at])} nats`;
  };
}

function inTotal(app) {
  const { before, after, more } = moreLoss(app);
  if (!app.off().length)
    return `All heads are on: the text costs ${before.toFixed(2)} nats a word. Switch one off above.`;
  const { ids } = app.text();
  const worst = more.indexOf(Math.max(...more));
  const harder =
    more[worst] >= SEEN
      ? ` Hardest hit: “${app.tokenizer.label(ids[worst])}” (word ${worst + 1}), ${signed(more[worst])} nats.`
      : "";
  return `Without ${app.off().join(", ")}: ${before.toFixed(2)} → ${after.toFixed(2)} nats a word.${harder}`;
}

// What comes after the chosen word, with and without the heads.
function beforeAndAfter(app) {
  const [whole, without] = [app.read(), app.readChanged()];
  const at = app.word(whole.length);
  const [before, after] = [softmax(whole.logits[at]), softmax(without.logits[at])];
  const order = Array.from(before.keys()).sort(
    (a, b) => Math.max(before[b], after[b]) - Math.max(before[a], after[a]),
  );
  const due = whole.ids[at + 1];
  const top = order.slice(0, TOP);
  if (due !== undefined && !top.includes(due)) top.push(due);
  const rows = top.map((id) => [
    app.tokenizer.label(id) + (id === due ? " (comes next)" : ""),
    bar(before[id]),
    h("span", { "data-before": id, "data-share": before[id] }, exact(before[id])),
    bar(after[id]),
    h("span", { "data-after": id, "data-share": after[id] }, exact(after[id])),
  ]);
  const caption = `What comes after “${app.tokenizer.label(whole.ids[at])}” (word ${at + 1})`;
  return table(caption, ["next word", "", "with all heads", "", "with these off"], rows);
}

function exact(share) {
  return share < 0.001 ? "<0.1\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;
}
