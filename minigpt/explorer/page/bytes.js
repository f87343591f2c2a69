// Numbers out of the page's text: base64 -> bytes -> float32.

export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

export function floats(text) {
  return new Float32Array(fromBase64(text));
}

// The model's tensors by name, each flat; see minigpt/explorer/numbers.py.
export function unpackedWeights({ tensors, numbers, scales }) {
  const all =
    scales === null ? floats(numbers) : Float32Array.from(new Int16Array(fromBase64(numbers)));
  const scaleOf = scales === null ? null : floats(scales);
  const found = {};
  let [start, row] = [0, 0];
  for (const [name, rows, columns] of tensors) {
    found[name] = all.subarray(start, start + rows * columns);
    for (let i = 0; scaleOf && i < found[name].length; i++) {
      found[name][i] *= scaleOf[row + Math.floor(i / columns)];
    }
    start += rows * columns;
    row += rows;
  }
  return found;
}
