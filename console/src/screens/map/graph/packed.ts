/** A part of a picture: what has no edge to the rest. */
export interface Box {
  readonly width: number;
  readonly height: number;
}

/** Room between two parts. */
const GAP = 60;

/**
 * Where boxes stand side by side in rows, the large ones first, so that all together are about `ratio` times as wide as
 * they are high. Gives the upper left corner of each, in the order of `boxes`.
 */
export function packed(boxes: readonly Box[], ratio: number): readonly (readonly [x: number, y: number])[] {
  const order = boxes.map((box, i) => ({ ...box, i })).sort((a, b) => b.height - a.height || a.i - b.i);
  const area = boxes.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0);
  const across = Math.max(Math.sqrt(area * ratio), ...boxes.map((b) => b.width));
  const corners = new Map<number, readonly [number, number]>();
  let [x, y, high] = [0, 0, 0];
  for (const { width, height, i } of order) {
    if (x > 0 && x + width > across) [x, y, high] = [0, y + high + GAP, 0];
    corners.set(i, [x, y]);
    [x, high] = [x + width + GAP, Math.max(high, height)];
  }
  return boxes.map((_, i) => corners.get(i) ?? [0, 0]);
}
