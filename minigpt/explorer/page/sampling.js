// From scores to a draw, as minigpt/sampling.py does it; the random numbers are this page's own.
//
// logits (V,) -> candidates, best first, with their probabilities -> one of them

import { softmax } from "./model.js";

// Where the model begins to read a text of `length` tokens: a full context drops its older half.
export function windowStart(length, contextLength) {
  const half = Math.floor((contextLength + 1) / 2);
  return Math.ceil(Math.max(length - contextLength, 0) / half) * half;
}

// What may be drawn, best first: [{ id, probability }]. Temperature 0 leaves only the best.
export function candidates(logits, { temperature, topK, topP, minP }) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  if (!temperature) return [{ id: order[0], probability: 1 }];
  const scores = Float64Array.from(order, (id) => (logits[id] - logits[order[0]]) / temperature);
  let kept = order.length;
  if (topK) while (kept > topK && scores[kept - 1] < scores[topK - 1]) kept--;
  if (topP !== null && topP < 1) kept = Math.min(kept, withinShare(scores.subarray(0, kept), topP));
  if (minP) while (kept > 1 && scores[kept - 1] < Math.log(minP)) kept--;
  const probabilities = softmax(scores.subarray(0, kept));
  return Array.from(probabilities, (probability, at) => ({ id: order[at], probability }));
}

// How many of the best first reach a share.
function withinShare(scores, share) {
  const probabilities = softmax(scores);
  let sum = 0;
  for (let at = 0; at < probabilities.length; at++) {
    sum += probabilities[at];
    if (sum >= share) return at + 1;
  }
  return probabilities.length;
}

export function draw(choices, uniform) {
  let sum = 0;
  for (const choice of choices) {
    sum += choice.probability;
    if (uniform < sum) return choice.id;
  }
  return choices[choices.length - 1].id;
}

// A random number in [0, 1) that is a function of seed and step (Steele et al. 2014, "SplitMix").
export function uniformAt(seed, step) {
  let z = (Math.imul(seed | 0, 0x9e3779b1) + Math.imul(step + 1, 0x85ebca6b)) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
}
