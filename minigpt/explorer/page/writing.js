// Writing word by word: what the model sees of a text, the candidates at every step, the choice.
//
// ids, settings -> steps [{ id, candidates }]

import { Reading } from "./model.js";
import { candidates, draw, uniformAt, windowStart } from "./sampling.js";

export class Writing {
  constructor(model, ids) {
    this.model = model;
    this.prompt = ids;
    this.steps = [];
    this.reading = new Reading(model);
    this.start = 0;
  }

  get ids() {
    return [...this.prompt, ...this.steps.map((step) => step.id)];
  }

  // The scores of the next token. A full context drops its older half, which is then read anew.
  logits() {
    const ids = this.ids;
    const start = windowStart(ids.length, this.model.config.context_length);
    if (start !== this.start) this.reading = new Reading(this.model);
    this.start = start;
    const seen = ids.slice(start);
    if (this.reading.length >= seen.length) this.reading.truncate(seen.length - 1);
    this.reading.append(seen.slice(this.reading.length), true);
    return this.reading.logits[this.reading.length - 1];
  }

  // Writes one more token.
  step(settings) {
    const choices = candidates(this.logits(), settings);
    const uniform = uniformAt(settings.seed, this.steps.length);
    this.steps.push({ id: draw(choices, uniform), candidates: choices });
  }

  // Takes another candidate at a step; what came after it is gone.
  take(at, id) {
    const { candidates: choices } = this.steps[at];
    this.steps.length = at;
    this.steps.push({ id, candidates: choices });
    this.reading = new Reading(this.model);
  }
}
