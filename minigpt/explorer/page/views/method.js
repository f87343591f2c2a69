// How the numbers came about, and what they do not show.

import { h } from "../dom.js";

export const method = {
  title: "How it was measured",
  lead: "What the words on these pages mean, how each number was made, and what none of them shows.",
  build(app) {
    const { measured } = app.contents;
    const element = h(
      "div",
      { class: "prose" },
      measured.stories ? rules(measured) : plain(measured),
      pageItself(app),
      limits(measured),
      sources(measured),
    );
    return { element, update: () => {} };
  },
};

function rules({ stories }) {
  return [
    h("h3", {}, "Questions with known answers"),
    h(
      "p",
      {},
      `The model learned from generated stories, whose grammar knows what every word depends on. ${stories} stories that it had not seen ask it: where “She” stands, or where a name is due after “She says, I am”, which earlier word is the right one to look at, and which words compete with it? A head is right if its largest weight, the first token left out, is on a right word.`,
    ),
    h(
      "p",
      {},
      "Half of the stories choose (the best simple rule, the best head of an untrained model, the mean outputs); every number told comes from the other half. Intervals hold for all heads and relations at once, with 95 % (bootstrap over stories).",
    ),
    h("h3", {}, "A head resolves a relation if"),
    h(
      "ul",
      {},
      h(
        "li",
        {},
        "it is right at least half of the time, by 10 points more often than any rule that needs no model (the nearest candidate, the first, a fixed distance), and more often than the best head of an untrained model;",
      ),
      h(
        "li",
        {},
        "and without it the words that depend on the relation cost more than 0.05 nats more, three times as much as all others.",
      ),
    ),
    h(
      "p",
      {},
      "Only the first: it looks, without effect. Only the second: it is needed, but looks elsewhere. Heads that only matter when all of them are gone resolve a relation together. Where no rule fits, there is no label.",
    ),
    h("h3", {}, "Without a head"),
    h(
      "p",
      {},
      "A head is replaced by its mean output at the same kind of word over other stories: the model still knows that a name is due, but no longer which. This page's own switch uses the mean over all words, or nothing, and so may differ from the numbers on the cards.",
    ),
  ];
}

function plain({ texts, tokens }) {
  return [
    h("h3", {}, "Scores of heads"),
    h(
      "p",
      {},
      `Every head was looked at on ${texts} (${tokens.toLocaleString("en")} tokens). A head is described by the score that lies furthest above that of a head that looks at everything alike. That is a description, not a proof.`,
    ),
    h(
      "p",
      {},
      "“Without it” is how much more a token costs, in nats, where the head's output is replaced by its mean over other texts.",
    ),
  ];
}

function pageItself(app) {
  const numbers = app.tolerance > 1e-3 ? "16 bits each" : "32 bits each (float32)";
  return [
    h("h3", {}, "The model in this page"),
    h(
      "p",
      {},
      `The page holds the model's weights, ${numbers}, and computes with them in your browser. When it opened it compared its scores with PyTorch's on a reference text: the largest difference was ${app.difference.toExponential(1)} (allowed: ${app.tolerance}). Nothing is sent anywhere; the page may not reach a network.`,
    ),
    h(
      "p",
      {},
      "“Importance” is how much the loss would change if the head were turned down a little (Michel et al. 2019).",
    ),
  ];
}

function limits({ stories }) {
  return [
    h("h3", {}, "What this does not show"),
    h(
      "ul",
      {},
      h(
        "li",
        {},
        "Where a head looks is not what it does: the same look may copy a word, forbid it, or do nothing. Only switching off tells what is needed.",
      ),
      h(
        "li",
        {},
        "A head that is switched off may be replaced by others at once. So an effect is the least that the head contributes, not the most.",
      ),
      stories
        ? h(
            "li",
            {},
            "The stories are simple, and made by a grammar. A head that resolves pronouns here need not do so in free text, nor in a larger model.",
          )
        : h(
            "li",
            {},
            "Nobody has marked what is right in this text, so there is no telling whether a head solves a task.",
          ),
      h(
        "li",
        {},
        "Another training, with another seed, gives other heads: these are findings about this model, not about transformers.",
      ),
      h("li", {}, "The feed-forward layers, which hold most of the weights, are not looked into."),
    ),
  ];
}

function sources({ seed, torch, python, note }) {
  return [
    h("h3", {}, "Sources"),
    h(
      "p",
      {},
      "Attention: Vaswani et al. 2017. Positional and syntactic heads: Voita et al. 2019, Clark et al. 2019. Importance: Michel et al. 2019. Induction: Olsson et al. 2022. Replacing by means, and swaps: Wang et al. 2022. Resting on the first token: Xiao et al. 2023, Gu et al. 2025. Weights times values: Kobayashi et al. 2020.",
    ),
    h(
      "p",
      { class: "hint" },
      `Seed ${seed}; PyTorch ${torch}; Python ${python}.${note ? ` Note: ${note}` : ""}`,
    ),
  ];
}
