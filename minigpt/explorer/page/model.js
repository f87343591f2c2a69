// The forward pass of minigpt/model.py in plain JavaScript, token by token and readable.
//
// Shapes as there: T positions, E embed_dim, H heads, D head_dim, V vocabulary. A `Reading` is a
// text the model has read, with everything it computed on the way; appending to it is what a
// cache of keys and values does, and taking tokens back makes typing cheap.
//
// ids -> Reading: logits, and per layer queries, keys, values, weights, outputs

export class Model {
  // `config` as in the run; `tensors` by name, Float32Arrays; `means` (L, H, D) flat.
  constructor(config, tensors, means) {
    this.config = config;
    this.tensors = tensors;
    this.means = means;
    this.layers = config.heads.map((heads, layer) => ({ heads, prefix: `blocks.${layer}.` }));
    if (config.positions === "rotary") this.angles = rotaryAngles(config);
  }

  get(name) {
    return this.tensors[name];
  }

  // (T, in) -> (T, out) with the matrix `name`.weight (out, in) and its bias, if it has one.
  linear(name, x, rows) {
    const weight = this.get(`${name}.weight`);
    return product(x, rows, weight, this.get(`${name}.bias`));
  }

  norm(name, x, rows) {
    return layerNorm(x, rows, this.get(`${name}.weight`), this.get(`${name}.bias`));
  }

  // What stands for a head that is switched off: its mean output, or nothing.
  standIn(layer, head, mode) {
    const { num_heads: H, head_dim: D } = this.config;
    if (mode === "zero") return new Float32Array(D);
    const start = (layer * H + head) * D;
    return this.means.subarray(start, start + D);
  }
}

// `off` maps names of heads, "L1H2", to "mean" or "zero".
export class Reading {
  constructor(model, off = {}) {
    this.model = model;
    this.off = off;
    this.ids = [];
    this.logits = []; // per position (V,)
    this.layers = model.layers.map(({ heads }) => ({
      inputs: [], // per position (E,): what attention reads
      queries: heads.map(() => []), // per head, per position (D,)
      keys: heads.map(() => []),
      values: heads.map(() => []),
      weights: heads.map(() => []), // per head, per query (number of keys,)
      outputs: heads.map(() => []), // per head, per position (D,)
    }));
  }

  get length() {
    return this.ids.length;
  }

  // Forgets all tokens from `length` on.
  truncate(length) {
    this.ids.length = Math.min(length, this.ids.length);
    this.logits.length = this.ids.length;
    for (const layer of this.layers) {
      layer.inputs.length = this.ids.length;
      for (const name of ["queries", "keys", "values", "weights", "outputs"]) {
        for (const rows of layer[name]) rows.length = this.ids.length;
      }
    }
  }

  // Becomes the reading of `ids`; what both have in common is not read again.
  become(ids) {
    let same = 0;
    while (same < ids.length && ids[same] === this.ids[same]) same++;
    this.truncate(same);
    if (same < ids.length) this.append(ids.slice(same));
    return this;
  }

  // Reads more tokens; `lastOnly` scores only what follows the last of them.
  append(ids, lastOnly = false) {
    const { model } = this;
    const start = this.length;
    const T = ids.length;
    const E = model.config.embed_dim;
    let x = this.embed(ids, start);
    model.layers.forEach(({ prefix }, index) => {
      const inputs = model.norm(`${prefix}attention_norm`, x, T);
      x = add(x, this.attend(index, inputs, start, T));
      const normed = model.norm(`${prefix}feed_forward_norm`, x, T);
      const hidden = model.linear(`${prefix}feed_forward.expand`, normed, T);
      activate(hidden, model.config.activation);
      x = add(x, model.linear(`${prefix}feed_forward.contract`, hidden, T));
    });
    const from = lastOnly ? T - 1 : 0;
    const last = model.norm("final_norm", x.subarray(from * E), T - from);
    const head = model.get("head.weight") ?? model.get("token_embedding.weight");
    const logits = rowsOf(product(last, T - from, head), T - from);
    this.ids.push(...ids);
    this.logits.push(...new Array(from).fill(null), ...logits);
  }

  embed(ids, start) {
    const E = this.model.config.embed_dim;
    const tokens = this.model.get("token_embedding.weight");
    const places = this.model.get("position_embedding.weight");
    const x = new Float32Array(ids.length * E);
    ids.forEach((id, t) => {
      for (let e = 0; e < E; e++) {
        x[t * E + e] = tokens[id * E + e] + (places ? places[(start + t) * E + e] : 0);
      }
    });
    return x;
  }

  // (T, E) -> (T, E): what the heads of a layer add to the stream.
  attend(index, inputs, start, T) {
    const { model } = this;
    const { heads, prefix } = model.layers[index];
    const layer = this.layers[index];
    const D = model.config.head_dim;
    layer.inputs.push(...rowsOf(inputs, T));
    const name = `${prefix}attention.`;
    const queries = model.linear(`${name}W_query`, inputs, T);
    const keys = model.linear(`${name}W_key`, inputs, T);
    const values = model.linear(`${name}W_value`, inputs, T);
    const joined = new Float32Array(T * heads.length * D);
    heads.forEach((head, h) => {
      const slice = (x, t) => x.slice((t * heads.length + h) * D, (t * heads.length + h + 1) * D);
      const mode = this.off[`L${index}H${head}`];
      for (let t = 0; t < T; t++) {
        layer.queries[h].push(this.place(slice(queries, t), `${name}query_norm`, start + t));
        layer.keys[h].push(this.place(slice(keys, t), `${name}key_norm`, start + t));
        layer.values[h].push(slice(values, t));
        const weights = attentionWeights(layer.queries[h][start + t], layer.keys[h]);
        const output = mode ? model.standIn(index, head, mode) : mix(weights, layer.values[h]);
        layer.weights[h].push(weights);
        layer.outputs[h].push(output);
        joined.set(output, (t * heads.length + h) * D);
      }
    });
    return model.linear(`${name}out_proj`, joined, T);
  }

  // A query or key of one length, if the model asks for that, and turned by its position.
  place(vector, norm, position) {
    const weight = this.model.get(`${norm}.weight`);
    const sized = weight ? rmsNorm(vector, weight) : vector;
    return this.model.angles ? turn(sized, this.model.angles, position) : sized;
  }
}

// ------------------------------------------------------------------------------ arithmetic

// x (T, in) times weight (out, in) transposed, plus bias: (T, out). Four rows at a time, so that
// each weight is fetched once for all four.
export function product(x, rows, weight, bias) {
  const inside = x.length / rows;
  const outside = weight.length / inside;
  const out = new Float32Array(rows * outside);
  let t = 0;
  for (; t + 3 < rows; t += 4) {
    const [a, b, c, d] = [t, t + 1, t + 2, t + 3].map((row) => row * inside);
    for (let o = 0; o < outside; o++) {
      const w = o * inside;
      let [p, q, r, s] = [0, 0, 0, 0];
      for (let i = 0; i < inside; i++) {
        const value = weight[w + i];
        p += value * x[a + i];
        q += value * x[b + i];
        r += value * x[c + i];
        s += value * x[d + i];
      }
      const more = bias ? bias[o] : 0;
      out[t * outside + o] = p + more;
      out[(t + 1) * outside + o] = q + more;
      out[(t + 2) * outside + o] = r + more;
      out[(t + 3) * outside + o] = s + more;
    }
  }
  for (; t < rows; t++) {
    for (let o = 0; o < outside; o++) {
      const w = o * inside;
      let sum = bias ? bias[o] : 0;
      for (let i = 0; i < inside; i++) sum += weight[w + i] * x[t * inside + i];
      out[t * outside + o] = sum;
    }
  }
  return out;
}

// softmax(q · k / √D) over the keys so far; later ones are not there yet, which is the mask.
export function attentionWeights(query, keys) {
  const scale = 1 / Math.sqrt(query.length);
  return softmax(Float32Array.from(keys, (key) => dot(query, key) * scale));
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

export function softmax(scores) {
  let best = -Infinity;
  for (const score of scores) if (score > best) best = score;
  const weights = Float32Array.from(scores, (score) => Math.exp(score - best));
  let sum = 0;
  for (const weight of weights) sum += weight;
  return weights.map((weight) => weight / sum);
}

// The values, each as much as its weight says.
export function mix(weights, values) {
  const out = new Float32Array(values[0].length);
  for (let s = 0; s < weights.length; s++) {
    for (let d = 0; d < out.length; d++) out[d] += weights[s] * values[s][d];
  }
  return out;
}

function layerNorm(x, rows, weight, bias) {
  const E = x.length / rows;
  const out = new Float32Array(x.length);
  for (let t = 0; t < rows; t++) {
    let mean = 0;
    for (let e = 0; e < E; e++) mean += x[t * E + e] / E;
    let variance = 0;
    for (let e = 0; e < E; e++) variance += (x[t * E + e] - mean) ** 2 / E;
    const scale = 1 / Math.sqrt(variance + 1e-5);
    for (let e = 0; e < E; e++) {
      out[t * E + e] = (x[t * E + e] - mean) * scale * weight[e] + (bias ? bias[e] : 0);
    }
  }
  return out;
}

function rmsNorm(x, weight) {
  const scale = 1 / Math.sqrt(dot(x, x) / x.length + 2 ** -23);
  return x.map((value, d) => value * scale * weight[d]);
}

function rotaryAngles({ head_dim: D, context_length: length }) {
  const angles = [];
  for (let position = 0; position < length; position++) {
    const speeds = Array.from({ length: D / 2 }, (_, pair) => 10000 ** (-(2 * pair) / D));
    angles.push(speeds.map((speed) => position * speed));
  }
  return angles;
}

function turn(x, angles, position) {
  const half = x.length / 2;
  const out = new Float32Array(x.length);
  for (let pair = 0; pair < half; pair++) {
    const cosine = Math.cos(angles[position][pair]);
    const sine = Math.sin(angles[position][pair]);
    out[pair] = x[pair] * cosine - x[half + pair] * sine;
    out[half + pair] = x[half + pair] * cosine + x[pair] * sine;
  }
  return out;
}

const ACTIVATIONS = {
  relu2: (x) => (x > 0 ? x * x : 0),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

function activate(x, name) {
  const activation = ACTIVATIONS[name];
  for (let i = 0; i < x.length; i++) x[i] = activation(x[i]);
}

// Abramowitz & Stegun 1964, formula 7.1.26; wrong by 1.5e-7 at most.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const powers = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429];
  const sum = powers.reduceRight((rest, factor) => (rest + factor) * t, 0);
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

function add(x, y) {
  for (let i = 0; i < x.length; i++) x[i] += y[i];
  return x;
}

function rowsOf(x, rows) {
  const width = x.length / rows;
  return Array.from({ length: rows }, (_, row) => x.slice(row * width, (row + 1) * width));
}
