// Three to six plain sentences, each with what it rests on and a link to see it.

import { h, replace } from "../dom.js";

export const findings = {
  title: "Findings",
  lead: "What this model's attention heads have learned, in a few sentences. Follow one to its evidence, then look around.",
  build(app) {
    const list = h("ol", { class: "findings" });
    const update = () =>
      replace(
        list,
        app.contents.findings.map((one) => finding(one)),
      );
    return { element: h("div", {}, list, note(app)), update };
  },
};

function finding({ text, evidence, link }) {
  return h(
    "li",
    {},
    h("p", { class: "said" }, text),
    h(
      "p",
      { class: "evidence" },
      evidence,
      " ",
      h("a", { href: `#${link}` }, "See it", hidden(text)),
    ),
  );
}

// Links that read alike must differ for those who hear them.
function hidden(text) {
  return h("span", { class: "unseen" }, `: ${text}`);
}

function note(app) {
  if (app.contents.measured.stories) return null;
  return h(
    "p",
    { class: "note" },
    "This model has read a text whose right answers nobody knows, so the page describes where heads look and what is lost without them. ",
    "What a head resolves can only be told of models trained on stories.",
  );
}
